#pragma once
/// \file
/// The case file (TOML) of the command line: a problem, how to solve it and what to write.

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "solenoid/options.hpp"
#include "solenoid/permeability.hpp"
#include "solenoid/problem.hpp"
#include "solenoid/time_stepper.hpp"

namespace solenoid {

/// The least and the largest value that has a colour of its own.
using Scale = std::array<double, 2>;

/// The plane {x_axis = position}.
struct Plane {
  int axis = 0;
  double position = 0.0;
};

/// Points along a line, or in a parallelogram: origin + s edges[0] + t edges[1] with s and t from 0 to 1 in so many
/// steps, s fastest.
struct Samples {
  std::string file;  ///< name of a CSV file
  Point origin{};
  std::array<Point, 2> edges{};
  std::array<int, 2> count{1, 1};

  [[nodiscard]] std::vector<Point> points() const;
};

struct OutputOptions {
  bool vtu = false;
  int subdivide = 0;              ///< > 0: each cell as subdivide^dim linear cells, for viewers without Lagrange cells
  std::string picture;            ///< file name of a PNG slice, empty for none
  std::vector<FlowField> fields;  ///< in VTU files, and as pictures of their own beside that of the speed
  std::map<std::optional<FlowField>, Scale> scales;  ///< of pictures that have not their own; no field: the speed
  bool forces = false;                               ///< Solution::forces()
  Point torques_about{};
  bool energy = false;  ///< kinetic energy and dissipation
  bool permeability = false;
  std::vector<Plane> fluxes;
  std::vector<Samples> samples;
  std::map<int, std::string> normal_stresses;  ///< names of CSV files, by the numbers of sides
  std::string speeds;                          ///< name of a CSV file of how speeds are distributed, empty for none
  // Of each flow of a permeability:
  bool vti = false;         ///< write_vti()
  std::string arrays;       ///< name of an HDF5 file of write_image_fields(), empty for none
  double size_limit = 1.0;  ///< of these files, in GB before they are compressed
  // Of a flow in time:
  double every = 0.0;       ///< time between VTU files and pictures; 0: at the end alone
  double checkpoint = 0.0;  ///< time between checkpoints; 0: none
  std::string history;      ///< name of a CSV file with a line per step, empty for none
};

/// A flow in time.
struct March {
  TimeOptions options;
  double end = 0.0;
  std::array<bool, 3> average_along{};  ///< directions of averages, besides the time; none: no profile
};

/// What a case was read from.
struct CaseSource {
  std::string name;  ///< of the file
  std::string text;
  std::vector<std::string> settings;
};

struct Case {
  std::string name;  ///< stem of the file name
  CaseSource source;
  Problem problem;
  SolverOptions solver;
  Exact exact;                                      ///< of a flow in time at its end
  std::optional<March> time;                        ///< nullopt: a steady problem
  std::optional<PermeabilityOptions> permeability;  ///< that of the image; the problem is its first flow
  std::vector<Point> probes;
  OutputOptions output;
  std::string image_axes;  ///< directions of the indices of the image in its file as an array; "": zyx, yx
};

/// Reads and validates. `settings` are read as if they stood in the file in place of what is there: KEY=VALUE with a
/// key of the file and its value in TOML, "mesh.refine=5" or "probe[0].point=[0.5, 0.5]"; entries of a list that is
/// there are counted from 0. \throws InputError: file, line or setting, key, what was expected, the nearest valid name.
Case read_case(const std::filesystem::path& file, const std::vector<std::string>& settings = {});
/// The same from text; `name` stands for the file in messages.
Case parse_case(std::string_view text, const std::string& name, const std::vector<std::string>& settings = {});

}  // namespace solenoid
