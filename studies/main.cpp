// solenoid-studies: what `solenoid study` starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "program/launch.hpp"
#include "solenoid/communicator.hpp"
#include "studies/study.hpp"

int main(int argc, char** argv) {
  using namespace solenoid::studies;
  CommandLine line("solenoid study", "Reproductions and sweeps");
  line.add("iterations", "GMRES iterations over orders and levels; --preset paper: the paper's Table 1",
           add_iterations);
  line.add("convergence", "Errors and their orders over orders and refinements", add_convergence);
  line.add("throughput", "Time per unknown of each part, beside what the machine can do at most", add_throughput);
  line.add("step", "Time per unknown of a step in time and of its parts, beside what the machine can do at most",
           add_step);
  line.add("capacity", "Full multigrid on the largest mesh that fits: memory, errors and their order", add_capacity);
  line.add("coefficients", "What coefficients, loads and integrals of a linear system cost, in V-cycles",
           add_coefficients);
  line.add("cells", "Time per unknown of kernels where coefficients or cells differ, over that where they do not",
           add_cells);
  line.add("step104", "Error against time and unknowns on the problem of deal.II's step-104", add_step104);
  line.add("corners", "Time per unknown of everything else over that of the main path", add_corners);
  line.add("voxels", "Flow through images by size and element: iterations, times, memory", add_voxels);
  line.add("sinkers", "Stiff bodies that sink: iterations and times by their number, contrast and shape", add_sinkers);
  line.add("scaling", "Times of several ranks, started by mpirun with as many of them", add_scaling);
  line.add("paper", "All tables and figures of the paper in one report", add_paper);
  return run_as_ranks([&] {
    constexpr std::array<std::string_view, 4> of_ranks{"iterations", "throughput", "capacity", "scaling"};
    const bool knows_ranks = argc > 1 && std::find(of_ranks.begin(), of_ranks.end(), argv[1]) != of_ranks.end();
    if (knows_ranks || solenoid::launched_ranks() == nullptr) return line.run(argc, argv);
    fmt::print(stderr, "solenoid: of the studies only {} are for several ranks: start one process\n",
               fmt::join(of_ranks, ", "));
    return static_cast<int>(bad_input);
  });
}
