#pragma once
/// \file
/// Figures that others have printed, to stand beside those measured here.
///
/// "The paper" is `paper`.

#include <array>
#include <optional>

namespace solenoid::studies::published {

inline constexpr auto paper =
    "Cu Cui and Guido Kanschat, Multigrid methods for the Stokes problem on GPU systems, Computers & Fluids 299 (2025) "
    "106703, doi:10.1016/j.compfluid.2025.106703, arXiv:2410.09497";

/// Table 1: fractional GMRES iterations in 2D to a relative accuracy of 1e-8. Rows L = 3..9, columns k = 3..8.
struct Table1 {
  static constexpr int first_level = 3;
  static constexpr int first_order = 3;
  static constexpr double rtol = 1e-8;

  std::array<std::array<double, 6>, 7> values;

  [[nodiscard]] constexpr std::optional<double> at(int order, int level) const {
    const int row = level - first_level;
    const int column = order - first_order;
    if (row < 0 || row >= static_cast<int>(values.size())) return std::nullopt;
    if (column < 0 || column >= static_cast<int>(values[0].size())) return std::nullopt;
    return values[row][column];
  }
};

/// Local problems solved directly.
inline constexpr Table1 table1_direct{{{{2.8, 2.4, 2.1, 2.2, 1.9, 2.1},
                                        {3.2, 2.4, 2.3, 2.2, 2.1, 2.0},
                                        {3.2, 2.3, 2.3, 2.0, 2.0, 1.9},
                                        {3.0, 2.2, 2.2, 1.9, 1.9, 1.8},
                                        {2.9, 1.9, 1.9, 1.8, 1.8, 1.7},
                                        {2.8, 1.9, 1.8, 1.8, 1.8, 1.8},
                                        {2.7, 1.9, 1.9, 1.8, 1.8, 1.8}}}};
/// Local problems solved by their Schur complement.
inline constexpr Table1 table1_schur{{{{2.6, 2.3, 2.0, 2.2, 2.0, 2.0},
                                       {3.2, 2.5, 2.4, 2.3, 2.1, 2.2},
                                       {3.3, 2.5, 2.5, 2.4, 2.0, 2.2},
                                       {3.3, 2.5, 2.5, 2.3, 1.9, 2.0},
                                       {3.3, 2.5, 2.4, 2.3, 1.9, 2.0},
                                       {3.0, 2.5, 2.4, 2.3, 1.9, 1.9},
                                       {2.9, 2.4, 2.4, 2.4, 1.9, 1.9}}}};

/// Table 2, a column: one NVIDIA A100, 3D, 32^3 cells, relative residual 1e-6. Times in ns per unknown.
struct Table2Column {
  int dofs_per_patch;
  double operator_ns;
  double smoothing_ns;
  int iterations;
  double solve_ns;
};
inline constexpr Table2Column poisson_q4{1000, 0.374, 3.968, 2, 28.875};
inline constexpr Table2Column poisson_q7{4096, 0.676, 6.944, 2, 49.751};
inline constexpr Table2Column poisson_fused_q4{1000, 0.374, 1.068, 4, 15.060};
inline constexpr Table2Column poisson_fused_q7{4096, 0.676, 1.866, 5, 31.140};
inline constexpr Table2Column stokes_rt2{972, 0.535, 7.576, 3, 63.694};
inline constexpr Table2Column stokes_rt4{4300, 0.813, 10.582, 3, 79.365};

/// The kernels of the paper's authors on one NVIDIA H200 in double precision, in ns per unknown, RT_1 to RT_4: the
/// fastest operator, and a smoothing step.
inline constexpr std::array<double, 4> authors_operator_ns{0.286, 0.257, 0.320, 0.372};
inline constexpr std::array<double, 4> authors_smoothing_ns{5.4, 5.8, 7.3, 9.4};

}  // namespace solenoid::studies::published
