#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/new_file.hpp"
#include "mesh/grid.hpp"
#include "output/canvas.hpp"
#include "output/streamlines.hpp"
#include "output/ticks.hpp"
#include "problem/names.hpp"
#include "problem/parts.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solution/gradients.hpp"
#include "solution/joined.hpp"

namespace solenoid {

namespace {

constexpr Colour white{1, 1, 1};
constexpr Colour ink{0.13F, 0.14F, 0.16F};
constexpr Colour outline{0.35F, 0.36F, 0.38F};
constexpr Colour nothing{0.88F, 0.885F, 0.89F};  // outside the domain

// Layout in pixels.
constexpr int margin = 24;           // around everything
constexpr int longest_width = 1060;  // of the plot
constexpr int longest_height = 1200;
constexpr int shortest = 100;
constexpr int smallest_bar = 420;
constexpr int bar_gap = 26;
constexpr int bar_height = 18;
constexpr double outline_width = 2;
constexpr double tick_length = 7;
constexpr double title_height = 18;  // of digits
constexpr double label_height = 16;
constexpr double letter_gap = 8;
constexpr double text_thickness = 1.8;

constexpr double constant_range = 1e-12;  // relative: where there is less, rounding is all that differs
constexpr double negligible_flow =
    1e-5;  // of the largest speed: what the solver leaves where there is no flow in the plane

// The colour map viridis, t in [0, 1]: a smooth curve (Catmull and Rom's) through eleven of its colours, since kinks
// would be seen as bands.
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
  constexpr int last = table.size() - 1;
  const double place = std::clamp(t, 0.0, 1.0) * last;
  const int i = std::min(static_cast<int>(place), last - 1);
  const double s = place - i;
  Colour colour;
  for (int c = 0; c < 3; ++c) {
    const double p1 = table[i][c];
    const double p2 = table[i + 1][c];
    const double p0 = i > 0 ? table[i - 1][c] : 2 * p1 - p2;
    const double p3 = i + 1 < last ? table[i + 2][c] : 2 * p2 - p1;
    const double value = p1 + 0.5 * s * (p2 - p0 + s * (2 * p0 - 5 * p1 + 4 * p2 - p3 + s * (3 * (p1 - p2) + p3 - p0)));
    colour[c] = static_cast<float>(value / 255.0);
  }
  return colour;
}

// From blue over white to red, t in [0, 1]: of what has a sign, with zero in the middle.
Colour blue_to_red(double t) {
  static constexpr std::array<std::array<int, 3>, 5> table{
      {{23, 62, 130}, {96, 152, 201}, {247, 247, 247}, {222, 115, 90}, {142, 20, 42}}};
  constexpr int last = table.size() - 1;
  const double place = std::clamp(t, 0.0, 1.0) * last;
  const int i = std::min(static_cast<int>(place), last - 1);
  Colour colour;
  for (int c = 0; c < 3; ++c) {
    colour[c] = static_cast<float>(std::lerp(table[i][c], table[i + 1][c], place - i) / 255.0);
  }
  return colour;
}

struct Tick {
  double value;
  std::string label;
};

double largest(double low, double high) { return std::max(std::abs(low), std::abs(high)); }

// Ticks of [low, high] for `pixels` of an axis, as many up to seven as leave each label its `room` (a function).
template <class Room>
std::vector<Tick> ticks_of(double low, double high, double pixels, Room room) {
  std::vector<Tick> ticks;
  for (int count = 7; count > 0; --count) {
    const double step = nice_step(high - low, count);
    double needed = 0;
    ticks.clear();
    for (const double value : multiples(step, low, high)) {
      ticks.push_back({value, number_label(value, step, largest(low, high))});
      needed = std::max<double>(needed, room(ticks.back().label));
    }
    if (needed <= step / (high - low) * pixels) return ticks;
  }
  ticks.resize(std::min<std::size_t>(ticks.size(), 1));
  return ticks;
}

double label_width(const std::string& label) { return text_width(label, label_height); }
double room_beside(const std::string& label) { return label_width(label) + 2 * letter_gap; }
double room_above(const std::string& /*label*/) { return 3 * label_height; }

// The scale of colours.
struct Range {
  double low = 0;
  double high = 1;
};

// Of all numbers but NaN. From zero for what cannot be negative, and where that takes at most half of the colours; a
// constant is not blown up to show its rounding errors.
Range range_of(const std::vector<double>& values, bool from_zero) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double low = infinity;
  double high = -infinity;
  for (const double value : values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (low > high) return {};
  if (low > 0 && (from_zero || low <= high - low)) low = 0;
  if (high < 0 && -high <= high - low) high = 0;
  if (high - low <= constant_range * largest(low, high)) {
    low = std::min(low, 0.0);
    high = std::max(high, 0.0);
  }
  return low < high ? Range{low, high} : Range{};
}

// With zero in the middle. Derivatives are largest at corners and in layers, where few see them: at most a hundredth of
// the values, not counting NaN, are beyond the ends.
Range range_about_zero(const std::vector<double>& values) {
  std::vector<double> sizes;
  for (const double value : values) {
    if (!std::isnan(value)) sizes.push_back(std::abs(value));
  }
  if (sizes.empty()) return {-1.0, 1.0};
  const auto place = sizes.begin() + std::ssize(sizes) * 99 / 100;
  std::nth_element(sizes.begin(), place, sizes.end());
  const double end = *place > 0.0 ? *place : *std::max_element(sizes.begin(), sizes.end());
  return end > 0.0 ? Range{-end, end} : Range{-1.0, 1.0};
}

// The corners of the box around a domain.
struct Box {
  Point lower;
  Point upper;

  explicit Box(const Mesh& mesh) : lower(mesh.lower), upper(mesh.edges ? mesh.lower : mesh.upper) {
    for (int a = 0; a < mesh.dim && mesh.edges; ++a) {
      for (int i = 0; i < mesh.dim; ++i) {
        const double reach = (*mesh.edges)[a][i];
        (reach < 0.0 ? lower : upper)[i] += reach;
      }
    }
  }
};

// The plane that is shown, where it lies on the canvas, and the velocity, or Poisson's u, at its pixels.
struct Slice {
  const Solution& solution;
  Box box;                             // around the domain
  std::optional<FlowField> derived{};  // in place of the speed
  double z = 0.0;
  int width = 0;  // of the plot
  int height = 0;
  Spot scale{};               // pixels per length
  std::vector<double> shade;  // speed or u per pixel, NaN outside the domain
  Range range;                // of the shades
  VectorRaster field;         // empty without a velocity in the plane

  Slice(const Solution& s, const std::optional<FlowField>& shown, const std::optional<Scale>& scale_of_series)
      : solution(s), box(s.problem().mesh), derived(shown) {
    const Mesh& mesh = s.problem().mesh;
    if (mesh.dim == 3) {
      z = 0.5 * (box.lower[2] + box.upper[2]);
      // Not along faces of holes: through the cells above.
      const Grid& grid = s.grid();
      const int above = grid.extent()[2] / 2;
      if (hole_count(mesh) > 0 && grid.extent()[2] % 2 == 0) z += 0.5 * grid.metric().width(2, above);
    }
    const Spot length{box.upper[0] - box.lower[0], box.upper[1] - box.lower[1]};
    const double pixels = std::min(longest_width / length[0], longest_height / length[1]);
    width = std::max(shortest, static_cast<int>(std::lround(pixels * length[0])));
    height = std::max(shortest, static_cast<int>(std::lround(pixels * length[1])));
    scale = {width / length[0], height / length[1]};
    sample();
    if (scale_of_series) range = {(*scale_of_series)[0], (*scale_of_series)[1]};
  }

  [[nodiscard]] bool has_velocity() const { return solution.problem().equation == EquationKind::stokes; }
  // Whether zero is in the middle of the colours.
  [[nodiscard]] bool is_signed() const { return derived == FlowField::vorticity || derived == FlowField::q; }
  [[nodiscard]] Colour colour(double part) const { return is_signed() ? blue_to_red(part) : viridis(part); }
  // Whether a length has other numbers of pixels in x and in y, because the domain is so long.
  [[nodiscard]] bool distorted() const { return std::abs(scale[0] / scale[1] - 1) > 0.1; }

  // Plot pixels of a point of the plane.
  [[nodiscard]] Spot spot(double x, double y) const {
    return {(x - box.lower[0]) * scale[0], (box.upper[1] - y) * scale[1]};
  }

 private:
  void sample() {
    std::vector<Point> points;
    points.reserve(static_cast<std::size_t>(width) * height);
    for (int j = 0; j < height; ++j) {
      for (int i = 0; i < width; ++i) {
        points.push_back({box.lower[0] + (i + 0.5) / scale[0], box.upper[1] - (j + 0.5) / scale[1], z});
      }
    }
    if (derived) {
      const int shown = derived == FlowField::vorticity ? 2 : 0;  // of a vorticity what lies across the plane
      const bool logarithms = derived == FlowField::viscosity;
      for (const FieldValue& value : solution.flow_field(*derived, points)) {
        shade.push_back(logarithms ? std::log10(value[shown]) : value[shown]);
      }
      range = is_signed() ? range_about_zero(shade) : range_of(shade, !logarithms);
      return;
    }
    if (!has_velocity()) {
      shade = solution.value(points);
      range = range_of(shade, false);
      return;
    }
    double fastest_in_plane = 0;
    field = {width, height, {}};
    for (const Point& u : solution.velocity(points)) {
      shade.push_back(std::hypot(u[0], u[1], u[2]));
      field.values.push_back({u[0] * scale[0], -u[1] * scale[1]});
      const double in_plane = std::hypot(u[0], u[1]);
      if (in_plane > fastest_in_plane) fastest_in_plane = in_plane;
    }
    range = range_of(shade, true);
    if (fastest_in_plane <= negligible_flow * range.high) field = {};
  }
};

class Picture {
 public:
  explicit Picture(const Slice& slice)
      : slice_(slice),
        x_ticks_(ticks_of(slice.box.lower[0], slice.box.upper[0], slice.width, room_beside)),
        y_ticks_(ticks_of(slice.box.lower[1], slice.box.upper[1], slice.height, room_above)) {
    const double labels = std::accumulate(y_ticks_.begin(), y_ticks_.end(), 0.0, [](double widest, const Tick& tick) {
      return std::max(widest, label_width(tick.label));
    });
    bar_width_ = std::max(slice.width, smallest_bar);
    // The plot in the middle of the bar, with room for its labels.
    const double beside = margin + label_width("y") + 2 * letter_gap + labels + letter_gap + tick_length;
    left_ = static_cast<int>(std::max(beside, 0.5 * (bar_width_ - slice.width) + 2.5 * margin));
    bar_left_ = left_ - (bar_width_ - slice.width) / 2;
    const double right = left_ + slice.width + (x_ticks_.empty() ? 0 : 0.5 * room_beside(x_ticks_.back().label));
    const int width = std::max(bar_left_ + bar_width_ + 2 * margin, static_cast<int>(right));
    wrap_title(width - 2 * margin);
    top_ = margin + static_cast<int>(letter_gap + static_cast<double>(title_.size()) * line_height);
    bar_top_ = top_ + slice.height + static_cast<int>(tick_length + 2 * (label_height + letter_gap)) + bar_gap;
    const double height = bar_top_ + bar_height + tick_length + letter_gap + label_height + margin;
    canvas_ = Canvas(width, static_cast<int>(height), white);
  }

  const Canvas& draw() {
    title();
    shade();
    if (!slice_.field.values.empty()) lines();
    edges();
    axes();
    colour_bar();
    return canvas_;
  }

 private:
  [[nodiscard]] const Mesh& mesh() const { return slice_.solution.problem().mesh; }
  [[nodiscard]] Spot placed(const Spot& spot) const { return {spot[0] + left_, spot[1] + top_}; }

  // What is shown, in as many lines as it takes.
  void wrap_title(double room) {
    std::vector<std::string> parts{name()};
    if (mesh().dim == 3) {
      parts.push_back("slice z = " + number_label(slice_.z, 1e-4 * (slice_.box.upper[2] - slice_.box.lower[2]),
                                                  largest(slice_.box.lower[2], slice_.box.upper[2])));
      if (!slice_.field.values.empty()) parts.emplace_back("streamlines: in-plane velocity");
      if (slice_.has_velocity() && !slice_.derived && slice_.field.values.empty()) {
        parts.emplace_back("no in-plane velocity");
      }
    }
    if (slice_.distorted()) parts.emplace_back("axes not to scale");
    for (const std::string& part : parts) {
      if (!title_.empty() && text_width(title_.back() + ", " + part, title_height) <= room) {
        title_.back() += ", " + part;
      } else {
        title_.push_back(part);
      }
    }
  }

  [[nodiscard]] std::string name() const {
    if (!slice_.derived) return slice_.has_velocity() ? "speed |u|" : "u";
    if (slice_.derived == FlowField::vorticity) return mesh().dim == 3 ? "vorticity, z component" : "vorticity";
    if (slice_.derived == FlowField::q) return "Q";
    if (slice_.derived == FlowField::viscosity) return "viscosity, log10";
    std::string name(name_of(*slice_.derived));
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
  }

  void title() {
    Coverage letters = canvas_.coverage();
    const double left = std::min(left_, bar_left_);
    double base = margin + title_height;
    for (const std::string& line : title_) {
      const double room = canvas_.width() - margin - text_width(line, title_height);
      write(letters, line, std::min(left, room), base, title_height);
      base += line_height;
    }
    canvas_.paint(letters, ink);
  }

  // Text from `left` on, at whole pixels.
  static void write(Coverage& letters, const std::string& text, double left, double base, double height) {
    letters.text(text, {std::round(left), std::round(base)}, height, text_thickness);
  }

  void shade() {
    const auto [low, high] = slice_.range;
    for (int j = 0; j < slice_.height; ++j) {
      for (int i = 0; i < slice_.width; ++i) {
        const double value = slice_.shade[i + static_cast<std::size_t>(slice_.width) * j];
        canvas_.pixel(left_ + i, top_ + j) = std::isnan(value) ? nothing : slice_.colour((value - low) / (high - low));
      }
    }
  }

  void lines() {
    constexpr double arrow_spacing = 300;
    constexpr double golden_ratio = 0.618;
    Coverage thin = canvas_.coverage();
    Coverage halo = canvas_.coverage();
    double phase = 0.0;  // of the first arrow, so that those of neighbouring lines do not touch
    const double separation = std::clamp(0.03 * std::min(slice_.width, slice_.height), 9.0, 26.0);
    for (Polyline& line : streamlines(slice_.field, separation)) {
      for (Spot& spot : line) spot = placed(spot);
      thin.stroke(line, 1.1);
      halo.stroke(line, 2.6);
      const auto arrows = std::max<std::size_t>(1, std::lround(static_cast<double>(line.size()) / arrow_spacing));
      phase = std::fmod(phase + golden_ratio, 1.0);
      for (std::size_t i = 0; i < arrows; ++i) {
        const double part = (static_cast<double>(i) + 0.25 + 0.5 * phase) / static_cast<double>(arrows);
        const auto middle = static_cast<std::size_t>(part * static_cast<double>(line.size()));
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
    return spot[0] < left_ + room || spot[0] > left_ + slice_.width - room || spot[1] < top_ + room ||
           spot[1] > top_ + slice_.height - room;
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
    if (metric.map() != nullptr && mesh().dim == 3) return;  // the plane crosses cells anyhow
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
          Point at{metric.plane(0, x + i), metric.plane(1, y + j), 0.0};
          if (metric.map() != nullptr) at = metric.map()->at(at);
          return placed(slice_.spot(at[0], at[1]));
        };
        if (missing(x - 1, y)) drawn.stroke({corner(0, 0), corner(0, 1)}, outline_width);
        if (missing(x + 1, y)) drawn.stroke({corner(1, 0), corner(1, 1)}, outline_width);
        if (missing(x, y - 1)) drawn.stroke({corner(0, 0), corner(1, 0)}, outline_width);
        if (missing(x, y + 1)) drawn.stroke({corner(0, 1), corner(1, 1)}, outline_width);
      }
    }
    canvas_.paint(drawn, outline);
  }

  // Ticks with coordinates at the lower and the left side.
  void axes() {
    Coverage marks = canvas_.coverage();
    Coverage letters = canvas_.coverage();
    const double bottom = top_ + slice_.height;
    for (const auto& [value, label] : x_ticks_) {
      const double x = placed(slice_.spot(value, slice_.box.lower[1]))[0];
      marks.stroke({{x, bottom}, {x, bottom + tick_length}}, 1.2);
      write(letters, label, x - 0.5 * label_width(label), bottom + tick_length + letter_gap + label_height,
            label_height);
    }
    write(letters, "x", left_ + 0.5 * (slice_.width - label_width("x")),
          bottom + tick_length + 2 * (letter_gap + label_height), label_height);
    double labels_left = left_;
    for (const auto& [value, label] : y_ticks_) {
      const double y = placed(slice_.spot(slice_.box.lower[0], value))[1];
      const double left = left_ - tick_length - letter_gap - label_width(label);
      marks.stroke({{left_ - tick_length, y}, {1.0 * left_, y}}, 1.2);
      write(letters, label, left, y + 0.5 * label_height, label_height);
      labels_left = std::min(labels_left, left);
    }
    write(letters, "y", labels_left - 2 * letter_gap - label_width("y"), top_ + 0.5 * (slice_.height + label_height),
          label_height);
    canvas_.paint(marks, outline);
    canvas_.paint(letters, ink);
  }

  // With its ends labelled, and ticks between them where their labels have room.
  void colour_bar() {
    for (int i = 0; i < bar_width_; ++i) {
      for (int j = 0; j < bar_height; ++j) {
        canvas_.pixel(bar_left_ + i, bar_top_ + j) = slice_.colour((i + 0.5) / bar_width_);
      }
    }
    Coverage marks = canvas_.coverage();
    const double x0 = bar_left_;
    const double x1 = bar_left_ + bar_width_;
    const double y0 = bar_top_;
    const double y1 = bar_top_ + bar_height;
    marks.stroke({{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}, {x0, y0}}, 1.2);
    Coverage letters = canvas_.coverage();
    const double low = slice_.range.low;
    const double high = slice_.range.high;
    constexpr double end_resolution = 5e-3;  // relative: three digits or so
    std::vector<Tick> ticks;
    for (const double end : {low, high}) {
      ticks.push_back({end, number_label(end, end_resolution * (high - low), largest(low, high))});
    }
    const auto place = [&](double value) { return x0 + bar_width_ * ((value - low) / (high - low)); };
    const double free_from = x0 + 0.5 * room_beside(ticks[0].label);
    const double free_to = x1 - 0.5 * room_beside(ticks[1].label);
    for (const Tick& tick : ticks_of(low, high, bar_width_, room_beside)) {
      const double half = 0.5 * room_beside(tick.label);
      if (place(tick.value) - half >= free_from && place(tick.value) + half <= free_to) ticks.push_back(tick);
    }
    for (const auto& [value, label] : ticks) {
      const double x = place(value);
      marks.stroke({{x, y1}, {x, y1 + tick_length}}, 1.2);
      const double last_left = canvas_.width() - letter_gap - label_width(label);
      write(letters, label, std::clamp(x - 0.5 * label_width(label), letter_gap, std::max(letter_gap, last_left)),
            y1 + tick_length + letter_gap + label_height, label_height);
    }
    canvas_.paint(marks, outline);
    canvas_.paint(letters, ink);
  }

  static constexpr double line_height = 1.9 * title_height;

  const Slice& slice_;
  std::vector<Tick> x_ticks_;
  std::vector<Tick> y_ticks_;
  std::vector<std::string> title_;
  int left_ = 0;  // of the plot
  int top_ = 0;
  int bar_left_ = 0;
  int bar_top_ = 0;
  int bar_width_ = 0;
  Canvas canvas_{0, 0, white};
};

}  // namespace

void write_picture(const Solution& solution, const std::filesystem::path& file, const std::optional<FlowField>& field,
                   const std::optional<Scale>& scale) {
  require_whole(solution.grid(), "a picture");
  if (field && solution.problem().equation == EquationKind::poisson) {
    throw InputError("write_picture: the solution of Poisson's equation has no velocity");
  }
  if (field && is_tensor(*field)) {
    throw InputError(fmt::format("write_picture: {} is a tensor: expected a scalar or the vorticity", name_of(*field)));
  }
  if (scale && !((*scale)[0] < (*scale)[1] && std::isfinite((*scale)[1] - (*scale)[0]))) {
    throw InputError(fmt::format("write_picture: the scale goes from {:g} to {:g}: expected two numbers that ascend",
                                 (*scale)[0], (*scale)[1]));
  }
  NewFile output(file);
  const Slice slice(solution, field, scale);
  Picture(slice).draw().write_png(output);
  output.commit();
}

}  // namespace solenoid
