#pragma once
/// \file
/// Univariate functions where forces are integrated: plain data.

#include <vector>

namespace solenoid {

/// Univariate functions at the places that points of cells and sides are made of: the Gauss points of [0, 1], 0, 1, and
/// a place for directions beyond the dimension, where there is one function, 1. In doubles:
///   place      [place]
///   weight     [place]
///   functions  [place][P, P', O, O'][n + 1] for h = 1
struct PlaceTables {
  int n = 0;
  int points = 0;  ///< of the Gauss rule

  [[nodiscard]] constexpr int places() const { return points + 3; }
  [[nodiscard]] constexpr int end(int upper) const { return points + upper; }
  [[nodiscard]] constexpr int beyond() const { return points + 2; }
  [[nodiscard]] constexpr int weight_at() const { return places(); }
  [[nodiscard]] constexpr int function_at(int place, bool continuous, bool slope) const {
    return 2 * places() + (4 * place + (continuous ? 0 : 2) + (slope ? 1 : 0)) * (n + 1);
  }
  [[nodiscard]] constexpr int size() const { return function_at(places(), true, false); }
};

/// In the memory of the host.
std::vector<double> make_tables(const PlaceTables& layout);

}  // namespace solenoid
