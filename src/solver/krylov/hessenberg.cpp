#include "solver/krylov/hessenberg.hpp"

#include <cmath>

namespace solenoid {

double Hessenberg::append(std::vector<double> column) {
  const std::size_t j = columns_.size();
  for (std::size_t i = 0; i < j; ++i) {
    const double upper = cosine_[i] * column[i] + sine_[i] * column[i + 1];
    column[i + 1] = cosine_[i] * column[i + 1] - sine_[i] * column[i];
    column[i] = upper;
  }
  const double length = std::hypot(column[j], column[j + 1]);
  cosine_.push_back(length == 0.0 ? 1.0 : column[j] / length);
  sine_.push_back(length == 0.0 ? 0.0 : column[j + 1] / length);
  column[j] = length;
  column.pop_back();
  columns_.push_back(std::move(column));
  g_.push_back(-sine_[j] * g_[j]);
  g_[j] *= cosine_[j];
  return std::abs(g_[j + 1]);
}

std::vector<double> Hessenberg::solve() const {
  std::vector<double> y(columns_.size());
  for (std::size_t i = columns_.size(); i-- > 0;) {
    double sum = g_[i];
    for (std::size_t j = i + 1; j < columns_.size(); ++j) sum -= columns_[j][i] * y[j];
    y[i] = columns_[i][i] == 0.0 ? 0.0 : sum / columns_[i][i];
  }
  return y;
}

std::vector<double> Hessenberg::residual() const {
  std::vector<double> z(g_.size());
  z.back() = g_.back();
  for (std::size_t i = columns_.size(); i-- > 0;) {
    z[i] = -sine_[i] * z[i + 1];
    z[i + 1] *= cosine_[i];
  }
  return z;
}

}  // namespace solenoid
