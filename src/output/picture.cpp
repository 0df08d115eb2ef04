#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/new_file.hpp"
#include "mesh/grid.hpp"
#include "output/canvas.hpp"
#include "output/streamlines.hpp"
#include "solenoid/output.hpp"

namespace solenoid {

namespace {

constexpr Colour white{1, 1, 1};
constexpr Colour ink{0.13F, 0.14F, 0.16F};
constexpr Colour outline{0.35F, 0.36F, 0.38F};
constexpr Colour nothing{0.88F, 0.885F, 0.89F};  // outside the domain

// Layout in pixels.
constexpr int margin = 40;
constexpr int title_space = 62;
constexpr int longest_width = 1120;  // of the plot
constexpr int longest_height = 1300;
constexpr int shortest = 60;
constexpr int smallest_canvas = 480;
constexpr int bar_gap = 30;
constexpr int bar_height = 18;
constexpr int label_space = 46;
constexpr double text_height = 16;
constexpr double text_thickness = 1.7;

// The colour map viridis, t in [0, 1].
Colour viridis(double t) {
  static constexpr std::array<std::array<int, 3>, 11> table{{{68, 1, 84},
                                                             {72, 36, 117},
                                                             {65, 68, 135},
                                                             {53, 95, 141},
                                                             {42, 120, 142},
                                                             {33, 145, 140},
                                                             {34, 168, 132},
                                                             {68, 191, 112},
                                                             {122, 209, 81},
                                                             {189, 223, 38},
                                                             {253, 231, 37}}};
  const double place = std::clamp(t, 0.0, 1.0) * (table.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(place), table.size() - 2);
  const double s = place - static_cast<double>(i);
  Colour colour;
  for (int c = 0; c < 3; ++c) colour[c] = static_cast<float>(((1 - s) * table[i][c] + s * table[i + 1][c]) / 255.0);
  return colour;
}

std::string formatted(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

// A tick's label: all labels of a very small or large scale have an exponent.
std::string label_of(double tick, double max) {
  const bool exponent = tick != 0.0 && (max < 1e-3 || max >= 1e5);
  return formatted(exponent ? "%.1e" : "%.4g", tick);
}

// Multiples of 1, 2 or 5 times a power of ten in [low, high], about five of them.
std::vector<double> round_ticks(double low, double high) {
  const double rough = (high - low) / 5;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  const double digit = rough / decade;
  const double step = decade * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  constexpr double slack = 1e-9;
  for (double i = std::ceil(low / step - slack); i * step <= high + slack * step; ++i) {
    ticks.push_back(i * step + 0.0);  // + 0.0: no -0
  }
  return ticks;
}

// The plane that is shown, where it lies on the canvas, and the velocity, or Poisson's u, at its pixels.
struct Slice {
  const Solution& solution;
  double z = 0.0;
  int width = 0;  // of the plot
  int height = 0;
  Spot scale{};  // pixels per length
  double lowest = 0.0;
  double highest = 0.0;
  std::vector<float> shade;  // speed or u per pixel, NaN outside the domain
  VectorRaster field;        // empty without a velocity

  explicit Slice(const Solution& s) : solution(s) {
    const Mesh& mesh = s.problem().mesh;
    if (mesh.dim == 3) {
      z = 0.5 * (mesh.lower[2] + mesh.upper[2]);
      // Not along faces of holes: through the cells above.
      const Grid& grid = s.grid();
      const int above = grid.extent()[2] / 2;
      if (!mesh.holes.empty() && grid.extent()[2] % 2 == 0) z += 0.5 * grid.metric().width(2, above);
    }
    const Spot length{mesh.upper[0] - mesh.lower[0], mesh.upper[1] - mesh.lower[1]};
    const double pixels = std::min(longest_width / length[0], longest_height / length[1]);
    width = std::max(shortest, static_cast<int>(std::lround(pixels * length[0])));
    height = std::max(shortest, static_cast<int>(std::lround(pixels * length[1])));
    scale = {width / length[0], height / length[1]};
    sample();
  }

  // Plot pixels of a point of the plane.
  [[nodiscard]] Spot spot(double x, double y) const {
    const Mesh& mesh = solution.problem().mesh;
    return {(x - mesh.lower[0]) * scale[0], (mesh.upper[1] - y) * scale[1]};
  }

 private:
  void sample() {
    const Mesh& mesh = solution.problem().mesh;
    std::vector<Point> points;
    points.reserve(static_cast<std::size_t>(width) * height);
    for (int j = 0; j < height; ++j) {
      for (int i = 0; i < width; ++i) {
        points.push_back({mesh.lower[0] + (i + 0.5) / scale[0], mesh.upper[1] - (j + 0.5) / scale[1], z});
      }
    }
    if (solution.problem().equation == EquationKind::poisson) {
      for (const double u : solution.value(points)) shade.push_back(static_cast<float>(u));
    } else {
      field = {width, height, {}};
      for (const Point& u : solution.velocity(points)) {
        shade.push_back(static_cast<float>(std::hypot(u[0], u[1], u[2])));
        field.values.push_back({static_cast<float>(u[0] * scale[0]), static_cast<float>(-u[1] * scale[1])});
      }
    }
    for (const double value : shade) {
      if (value > highest) highest = value;
      if (value < lowest) lowest = value;
    }
  }
};

class Picture {
 public:
  explicit Picture(const Slice& slice)
      : slice_(slice),
        canvas_(std::max(smallest_canvas, slice.width + 2 * margin),
                title_space + slice.height + bar_gap + bar_height + label_space, white),
        left_((canvas_.width() - slice.width) / 2),
        scale_end_(slice.highest > slice.lowest ? slice.highest : 1.0) {}

  const Canvas& draw() {
    title();
    shade();
    if (!slice_.field.values.empty()) lines();
    edges();
    colour_bar();
    return canvas_;
  }

 private:
  [[nodiscard]] Spot placed(const Spot& spot) const { return {spot[0] + left_, spot[1] + title_space}; }

  void title() {
    std::string text = slice_.field.values.empty() ? "u" : "speed |u|";
    if (slice_.solution.problem().mesh.dim == 3) text += ", slice z = " + formatted("%.4g", slice_.z);
    Coverage letters = canvas_.coverage();
    letters.text(text, {static_cast<double>(left_), title_space - 22.0}, 1.15 * text_height, 1.15 * text_thickness);
    canvas_.paint(letters, ink);
  }

  void shade() {
    for (int j = 0; j < slice_.height; ++j) {
      for (int i = 0; i < slice_.width; ++i) {
        const float value = slice_.shade[i + static_cast<std::size_t>(slice_.width) * j];
        canvas_.pixel(left_ + i, title_space + j) =
            std::isnan(value) ? nothing : viridis((value - slice_.lowest) / (scale_end_ - slice_.lowest));
      }
    }
  }

  void lines() {
    constexpr double arrow_spacing = 300;
    Coverage thin = canvas_.coverage();
    Coverage halo = canvas_.coverage();
    const double separation = std::clamp(0.03 * std::min(slice_.width, slice_.height), 9.0, 26.0);
    for (Polyline& line : streamlines(slice_.field, separation)) {
      for (Spot& spot : line) spot = placed(spot);
      thin.stroke(line, 1.1);
      halo.stroke(line, 2.6);
      const auto arrows = std::max<std::size_t>(1, std::lround(static_cast<double>(line.size()) / arrow_spacing));
      for (std::size_t i = 0; i < arrows; ++i) {
        const std::size_t middle = line.size() * (2 * i + 1) / (2 * arrows);
        if (middle < 4 || middle + 4 >= line.size() || near_frame(line[middle])) continue;
        thin.triangle(arrow(line[middle - 4], line[middle + 4], 1.0));
        halo.triangle(arrow(line[middle - 4], line[middle + 4], 1.3));
      }
    }
    canvas_.paint(halo, ink, 0.22F);
    canvas_.paint(thin, white, 0.8F);
  }

  // Where an arrow would stick out of the plot.
  [[nodiscard]] bool near_frame(const Spot& spot) const {
    constexpr double room = 6;
    return spot[0] < left_ + room || spot[0] > left_ + slice_.width - room || spot[1] < title_space + room ||
           spot[1] > title_space + slice_.height - room;
  }

  static std::array<Spot, 3> arrow(const Spot& from, const Spot& to, double size) {
    const double length = std::hypot(to[0] - from[0], to[1] - from[1]);
    const Spot along{size * (to[0] - from[0]) / length, size * (to[1] - from[1]) / length};
    const Spot centre{0.5 * (from[0] + to[0]), 0.5 * (from[1] + to[1])};
    const Spot back{centre[0] - 5 * along[0], centre[1] - 5 * along[1]};
    return {{{centre[0] + 6 * along[0], centre[1] + 6 * along[1]},
             {back[0] - 3.6 * along[1], back[1] + 3.6 * along[0]},
             {back[0] + 3.6 * along[1], back[1] - 3.6 * along[0]}}};
  }

  // The faces in the plane between a cell and no cell.
  void edges() {
    const Grid& grid = slice_.solution.grid();
    const Metric& metric = grid.metric();
    const int layer = grid.extent()[2] / 2;
    const auto missing = [&](int x, int y) {
      if (x < 0 || y < 0 || x >= grid.extent()[0] || y >= grid.extent()[1]) return true;
      return grid.at({x, y, layer}) < 0;
    };
    Coverage drawn = canvas_.coverage();
    for (int y = 0; y < grid.extent()[1]; ++y) {
      for (int x = 0; x < grid.extent()[0]; ++x) {
        if (missing(x, y)) continue;
        const auto corner = [&](int i, int j) {
          return placed(slice_.spot(metric.plane(0, x + i), metric.plane(1, y + j)));
        };
        if (missing(x - 1, y)) drawn.stroke({corner(0, 0), corner(0, 1)}, outline_width);
        if (missing(x + 1, y)) drawn.stroke({corner(1, 0), corner(1, 1)}, outline_width);
        if (missing(x, y - 1)) drawn.stroke({corner(0, 0), corner(1, 0)}, outline_width);
        if (missing(x, y + 1)) drawn.stroke({corner(0, 1), corner(1, 1)}, outline_width);
      }
    }
    canvas_.paint(drawn, outline);
  }

  void colour_bar() {
    const int top = title_space + slice_.height + bar_gap;
    const int left = std::min(left_, margin);
    const int width = canvas_.width() - 2 * left;
    for (int i = 0; i < width; ++i) {
      for (int j = 0; j < bar_height; ++j) canvas_.pixel(left + i, top + j) = viridis((i + 0.5) / width);
    }
    Coverage frame = canvas_.coverage();
    const double x0 = left;
    const double x1 = left + width;
    const double bottom = top + bar_height;
    frame.stroke({{x0, 1.0 * top}, {x1, 1.0 * top}, {x1, bottom}, {x0, bottom}, {x0, 1.0 * top}}, 1.2);
    Coverage letters = canvas_.coverage();
    for (const double tick : round_ticks(slice_.lowest, scale_end_)) {
      const double x = left + width * (tick - slice_.lowest) / (scale_end_ - slice_.lowest);
      frame.stroke({{x, bottom}, {x, bottom + 6}}, 1.2);
      const std::string label = label_of(tick, std::max(scale_end_, -slice_.lowest));
      letters.text(label, {x - 0.5 * text_width(label, 0.9 * text_height), bottom + 11 + 0.9 * text_height},
                   0.9 * text_height, text_thickness);
    }
    canvas_.paint(frame, outline);
    canvas_.paint(letters, ink);
  }

  static constexpr double outline_width = 2.0;

  const Slice& slice_;
  Canvas canvas_;
  int left_;  // of the plot
  double scale_end_;
};

}  // namespace

void write_picture(const Solution& solution, const std::filesystem::path& file) {
  NewFile output(file);
  const Slice slice(solution);
  Picture(slice).draw().write_png(output);
  output.commit();
}

}  // namespace solenoid
