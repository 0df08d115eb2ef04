#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/new_file.hpp"
#include "solenoid/arrays.hpp"
#include "solenoid/output.hpp"
#include "solution/joined.hpp"

namespace solenoid {

void write_csv(const Solution& solution, std::span<const Point> points, const std::filesystem::path& file) {
  const int dim = solution.problem().mesh.dim;
  const bool has_velocity = solution.problem().equation == EquationKind::stokes;
  const std::string_view axes = std::string_view("xyz").substr(0, dim);

  require_whole(solution.grid(), "a table of values");
  NewFile output(file);
  std::vector<std::string> names;
  for (const char axis : axes) names.emplace_back(1, axis);
  if (has_velocity) {
    for (const char axis : axes) names.push_back(fmt::format("u_{}", axis));
  }
  names.emplace_back(has_velocity ? "p" : "u");
  output.stream() << fmt::format("{}\n", fmt::join(names, ","));

  // Not all at once: samples may be many.
  constexpr std::size_t chunk = 1 << 14;
  std::string text;
  for (std::size_t first = 0; first < points.size(); first += chunk) {
    const auto some = points.subspan(first, std::min(chunk, points.size() - first));
    const std::vector<double> scalar = has_velocity ? solution.pressure(some) : solution.value(some);
    const std::vector<Point> velocity = has_velocity ? solution.velocity(some) : std::vector<Point>();
    text.clear();
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto append = [&](const Point& p) {
        for (int a = 0; a < dim; ++a) fmt::format_to(std::back_inserter(text), "{},", p[a]);
      };
      append(some[i]);
      if (has_velocity) append(velocity[i]);
      fmt::format_to(std::back_inserter(text), "{}\n", scalar[i]);
    }
    output.stream() << text;
  }
  output.commit();
}

void write_speeds(const Solution& solution, const std::filesystem::path& file) {
  require_whole(solution.grid(), "a distribution of speeds");
  const int dim = solution.problem().mesh.dim;
  const std::vector<double> velocity = velocity_at(solution);
  std::vector<double> speeds;
  for (std::size_t i = 0; i < velocity.size(); i += dim) {
    double square = 0.0;
    for (int c = 0; c < dim; ++c) square += velocity[i + c] * velocity[i + c];
    if (!std::isnan(square)) speeds.push_back(std::sqrt(square));  // NaN: a hole
  }
  const auto cells = static_cast<double>(speeds.size());
  const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / cells;
  const double largest = *std::max_element(speeds.begin(), speeds.end());
  constexpr int classes = 100;
  std::array<std::int64_t, classes> count{};
  for (const double speed : speeds) {
    ++count.at(std::min(classes - 1, largest > 0.0 ? static_cast<int>(classes * (speed / largest)) : 0));
  }
  const double width = mean > 0.0 ? largest / mean / classes : 1.0;
  NewFile output(file);
  output.stream() << "speed,density\n";
  for (int i = 0; i < classes; ++i) {
    output.stream() << fmt::format("{},{}\n", (i + 0.5) * width, static_cast<double>(count.at(i)) / cells / width);
  }
  output.commit();
}

void write_normal_stress(const Solution& solution, int side, const std::filesystem::path& file) {
  const Mesh& mesh = solution.problem().mesh;
  require_whole(solution.grid(), "a table of stresses");
  const std::vector<double> stress = normal_stress_at(solution, side);
  const std::vector<Point> points = points_of({mesh, 1, side});
  std::string text = fmt::format("{},normal_stress\n", mesh.dim == 2 ? "x,y" : "x,y,z");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto& [x, y, z] = points[i];
    fmt::format_to(std::back_inserter(text), "{},{},", x, y);
    if (mesh.dim == 3) fmt::format_to(std::back_inserter(text), "{},", z);
    fmt::format_to(std::back_inserter(text), "{}\n", stress[i]);
  }
  NewFile output(file);
  output.stream() << text;
  output.commit();
}

void write_csv(const Profile& profile, int dim, const std::filesystem::path& file) {
  const std::string_view axes = std::string_view("xyz").substr(0, dim);
  std::vector<std::string> names;
  for (const int a : profile.across) names.emplace_back(1, axes[a]);
  for (const char axis : axes) names.push_back(fmt::format("u_{}", axis));
  names.emplace_back("p");
  for (int c = 0; c < dim; ++c) {
    for (int d = c; d < dim; ++d) names.push_back(fmt::format("r_{}{}", axes[c], axes[d]));
  }
  names.emplace_back("dissipation");
  std::string text = fmt::format("{}\n", fmt::join(names, ","));
  for (const Profile::Row& row : profile.rows) {
    for (const int a : profile.across) fmt::format_to(std::back_inserter(text), "{},", row.at[a]);
    for (int c = 0; c < dim; ++c) fmt::format_to(std::back_inserter(text), "{},", row.velocity[c]);
    fmt::format_to(std::back_inserter(text), "{},", row.pressure);
    for (int c = 0; c < dim; ++c) {
      for (int d = c; d < dim; ++d) fmt::format_to(std::back_inserter(text), "{},", row.stress[c][d]);
    }
    fmt::format_to(std::back_inserter(text), "{}\n", row.dissipation);
  }
  NewFile output(file);
  output.stream() << text;
  output.commit();
}

}  // namespace solenoid
