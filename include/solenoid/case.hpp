#pragma once
/// \file
/// The case file (TOML) of the command line: a problem, how to solve it and what to write.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "solenoid/options.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

struct OutputOptions {
  bool vtu = false;
  int subdivide = 0;    ///< > 0: each cell as subdivide^dim linear cells, for viewers without Lagrange cells
  std::string picture;  ///< file name of a PNG slice, empty for none
};

struct Case {
  std::string name;  ///< stem of the file name
  Problem problem;
  SolverOptions solver;
  Exact exact;
  std::vector<Point> probes;
  OutputOptions output;
};

/// Reads and validates. \throws InputError: file, line, key, what was expected, the nearest valid name.
Case read_case(const std::filesystem::path& file);
/// The same from text; `name` stands for the file in messages.
Case parse_case(std::string_view text, const std::string& name);

}  // namespace solenoid
