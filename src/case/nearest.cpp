#include "case/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace solenoid {
namespace {

/// Optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  };
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before_last(width);
  std::vector<std::size_t> last(width);
  std::vector<std::size_t> current(width);
  for (std::size_t j = 0; j < width; ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j < width; ++j) {
      const bool equal = same(a[i - 1], b[j - 1]);
      current[j] = std::min({last[j] + 1, current[j - 1] + 1, last[j - 1] + (equal ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]);
      if (swapped) current[j] = std::min(current[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(current);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t longest = 64;  // no valid name is longer
  if (word.size() > longest) return {};
  std::string_view best;
  std::size_t smallest = 2 + word.size() / 3;  // this far away it was another word
  for (const auto candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= smallest || distance >= std::max(word.size(), candidate.size())) continue;
    smallest = distance;
    best = candidate;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (const auto name = nearest_name(word, candidates); !name.empty()) return fmt::format(": did you mean `{}`?", name);
  return fmt::format("; valid are `{}`", fmt::join(candidates, "`, `"));
}

}  // namespace solenoid
