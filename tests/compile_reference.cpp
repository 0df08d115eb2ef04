/// \file
/// The unit of compile_budget.json: what takes a compiler as long on every day. It is compiled and never linked; a
/// change of it changes all budgets. Half of its time are headers of the standard library, half are loops to be
/// optimised.

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <ranges>
#include <regex>
#include <string>
#include <utility>
#include <vector>

namespace reference {

/// y = A_a (x) A_b (x) A_c x for n x n matrices.
template <int n>
void tensor_product(const double (&a)[n][n], const double (&b)[n][n], const double (&c)[n][n], const double* x,
                    double* y) {
  double s[n][n][n];
  double t[n][n][n];
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        double sum = 0.0;
        for (int l = 0; l < n; ++l) sum += a[i][l] * x[l + n * (j + n * k)];
        s[k][j][i] = sum;
      }
    }
  }
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        double sum = 0.0;
        for (int l = 0; l < n; ++l) sum += b[j][l] * s[k][l][i];
        t[k][j][i] = sum;
      }
    }
  }
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        double sum = 0.0;
        for (int l = 0; l < n; ++l) sum += c[k][l] * t[l][j][i];
        y[i + n * (j + n * k)] += sum;
      }
    }
  }
}

template void tensor_product<2>(const double (&)[2][2], const double (&)[2][2], const double (&)[2][2], const double*,
                                double*);
template void tensor_product<3>(const double (&)[3][3], const double (&)[3][3], const double (&)[3][3], const double*,
                                double*);
template void tensor_product<4>(const double (&)[4][4], const double (&)[4][4], const double (&)[4][4], const double*,
                                double*);
template void tensor_product<5>(const double (&)[5][5], const double (&)[5][5], const double (&)[5][5], const double*,
                                double*);
template void tensor_product<6>(const double (&)[6][6], const double (&)[6][6], const double (&)[6][6], const double*,
                                double*);

std::map<std::string, std::vector<int>> index_of(const std::vector<std::string>& lines) {
  std::map<std::string, std::vector<int>> found;
  const std::regex word("[[:alpha:]]+");
  for (int number = 0; number < static_cast<int>(lines.size()); ++number) {
    for (std::sregex_iterator it(lines[number].begin(), lines[number].end(), word), end; it != end; ++it) {
      found[it->str()].push_back(number);
    }
  }
  return found;
}

std::vector<std::function<double(double)>> shuffled(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::function<double(double)>> all;
  for (const int i : std::views::iota(0, 100) | std::views::filter([](int i) { return i % 3 != 0; })) {
    all.emplace_back([i](double x) { return x * i; });
  }
  std::ranges::shuffle(all, random);
  std::ranges::sort(all, {}, [](const auto& f) { return f(1.0); });
  return all;
}

}  // namespace reference
