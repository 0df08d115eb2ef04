#include "output/streamlines.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace solenoid {

namespace {

constexpr double step = 1.0;                  // pixels along a line from point to point
constexpr double closest = 0.5;               // lines stop where they come closer than this times the separation
constexpr double relative_stagnation = 1e-6;  // speed, relative to the largest, below which lines stop
constexpr int longest = 20000;                // points

Spot shifted(const Spot& x, const Spot& direction, double length) {
  return {x[0] + length * direction[0], x[1] + length * direction[1]};
}

double distance(const Spot& x, const Spot& y) { return std::hypot(x[0] - y[0], x[1] - y[1]); }

// Points of all lines, in square bins of the size of the separation.
class Occupancy {
 public:
  struct Entry {
    Spot spot;
    int line;
    int index;  // along its line
  };

  Occupancy(int width, int height, double separation)
      : size_(separation),
        columns_(static_cast<int>(width / separation) + 1),
        rows_(static_cast<int>(height / separation) + 1),
        bins_(static_cast<std::size_t>(columns_) * rows_) {}

  void insert(const Entry& entry) { bin(entry.spot).push_back(entry); }
  // Takes back the last entry of the bin at `spot`.
  void withdraw(const Spot& spot) { bin(spot).pop_back(); }

  // True if a point lies nearer than `radius` (at most the separation) to x, those of the same line with an index
  // nearer than `ignore` left out.
  [[nodiscard]] bool near(const Spot& x, double radius, int line = -1, int index = 0, int ignore = 0) const {
    const auto [column, row] = place(x);
    for (int r = std::max(0, row - 1); r <= std::min(rows_ - 1, row + 1); ++r) {
      for (int c = std::max(0, column - 1); c <= std::min(columns_ - 1, column + 1); ++c) {
        for (const Entry& entry : bins_[c + static_cast<std::size_t>(columns_) * r]) {
          if (entry.line == line && std::abs(entry.index - index) < ignore) continue;
          if (distance(entry.spot, x) < radius) return true;
        }
      }
    }
    return false;
  }

 private:
  [[nodiscard]] std::array<int, 2> place(const Spot& x) const {
    return {std::clamp(static_cast<int>(x[0] / size_), 0, columns_ - 1),
            std::clamp(static_cast<int>(x[1] / size_), 0, rows_ - 1)};
  }
  std::vector<Entry>& bin(const Spot& x) {
    const auto [column, row] = place(x);
    return bins_[column + static_cast<std::size_t>(columns_) * row];
  }

  double size_;
  int columns_;
  int rows_;
  std::vector<std::vector<Entry>> bins_;
};

class Tracer {
 public:
  Tracer(const VectorRaster& field, double separation)
      : field_(field), separation_(separation), occupancy_(field.width, field.height, separation) {
    for (const auto& v : field.values) {
      const double speed = std::hypot(v[0], v[1]);
      if (speed > fastest_) fastest_ = speed;
    }
  }

  [[nodiscard]] std::vector<Polyline> trace() {
    if (fastest_ == 0.0) return {};
    // Lines beside lines as long as there is room, then wherever a gap is left (eddies that no line enters).
    const double spacing = 0.5 * separation_;
    for (int j = 0; j * spacing < field_.height; ++j) {
      for (int i = 0; i * spacing < field_.width; ++i) {
        if (!try_seed({(i + 0.5) * spacing, (j + 0.5) * spacing})) continue;
        for (std::size_t line = lines_.size() - 1; line < lines_.size(); ++line) seed_beside(line);
      }
    }
    return std::move(lines_);
  }

 private:
  // Unit vector of the field, or nothing.
  [[nodiscard]] std::optional<Spot> direction(const Spot& x) const {
    const Spot v = field_.at(x);
    const double speed = std::hypot(v[0], v[1]);
    if (!(speed > relative_stagnation * fastest_)) return std::nullopt;
    return Spot{v[0] / speed, v[1] / speed};
  }

  void seed_beside(std::size_t line) {
    const std::size_t stride = std::max<std::size_t>(1, static_cast<std::size_t>(0.25 * separation_ / step));
    for (std::size_t i = 0; i < lines_[line].size(); i += stride) {
      const Spot x = lines_[line][i];
      const auto along = direction(x);
      if (!along) continue;
      for (const double side : {-1.0, 1.0}) {
        try_seed(shifted(x, {-(*along)[1], (*along)[0]}, side * 1.01 * separation_));
      }
    }
  }

  bool try_seed(const Spot& seed) {
    if (!has_room(seed)) return false;
    const int line = static_cast<int>(lines_.size());
    std::deque<Spot> points{seed};
    occupancy_.insert({seed, line, 0});
    if (!follow(points, line, +1)) follow(points, line, -1);
    const double reach = std::accumulate(points.begin(), points.end(), 0.0, [&](double farthest, const Spot& x) {
      return std::max(farthest, distance(x, seed));
    });
    if (reach < closest * separation_) {  // a stump, or an orbit that is a mere dot
      for (const Spot& x : points) occupancy_.withdraw(x);
      return false;
    }
    lines_.emplace_back(points.begin(), points.end());
    return true;
  }

  // True if a line may start here: inside the field, away from its border and from other lines.
  [[nodiscard]] bool has_room(const Spot& seed) const {
    const double off = closest * separation_;
    for (const Spot& away : {Spot{off, 0}, Spot{-off, 0}, Spot{0, off}, Spot{0, -off}}) {
      if (!direction({seed[0] + away[0], seed[1] + away[1]})) return false;
    }
    return direction(seed) && !occupancy_.near(seed, separation_);
  }

  // Extends a line from its seed with (+1) or against (-1) the field. True if it came back to the seed: a closed orbit.
  bool follow(std::deque<Spot>& points, int line, int sign) {
    const Spot seed = points.front();
    const int apart = static_cast<int>(2.0 * separation_ / step);  // a line is not near itself within this index range
    const auto extend = [&](const Spot& x, int index) {
      occupancy_.insert({x, line, index});
      sign > 0 ? points.push_back(x) : points.push_front(x);
    };
    Spot x = seed;
    for (int index = sign; std::abs(index) < longest; index += sign) {
      const auto next = advance(x, sign * step);
      if (!next) return false;
      if (occupancy_.near(*next, closest * separation_, line, index, apart)) {
        const std::vector<Spot> closing = way_to(seed, *next, sign);
        for (const Spot& spot : closing) extend(spot, index);
        return !closing.empty();
      }
      x = *next;
      extend(x, index);
    }
    return false;
  }

  // The points from x to the seed if a line at x meets its seed soon, else nothing.
  [[nodiscard]] std::vector<Spot> way_to(const Spot& seed, const Spot& x, int sign) const {
    std::vector<Spot> way{x};
    for (int i = 0; i < 3.0 * separation_ / step; ++i) {
      if (distance(way.back(), seed) < step) {
        way.push_back(seed);
        return way;
      }
      const auto next = advance(way.back(), sign * step);
      if (!next) break;
      way.push_back(*next);
    }
    return {};
  }

  // A step along the line through x by the midpoint rule.
  [[nodiscard]] std::optional<Spot> advance(const Spot& x, double length) const {
    const auto start = direction(x);
    if (!start) return std::nullopt;
    const auto middle = direction(shifted(x, *start, 0.5 * length));
    if (!middle) return std::nullopt;
    return shifted(x, *middle, length);
  }

  const VectorRaster& field_;
  double separation_;
  Occupancy occupancy_;
  double fastest_ = 0.0;
  std::vector<Polyline> lines_;
};

}  // namespace

Spot VectorRaster::at(const Spot& spot) const {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const double x = spot[0] - 0.5;
  const double y = spot[1] - 0.5;
  if (!(x >= 0 && y >= 0 && x < width - 1 && y < height - 1)) return {nan, nan};
  const int i = static_cast<int>(x);
  const int j = static_cast<int>(y);
  const double s = x - i;
  const double t = y - j;
  const auto* corner = &values[i + static_cast<std::size_t>(width) * j];
  Spot v;
  for (int a = 0; a < 2; ++a) {
    v[a] = (1 - t) * ((1 - s) * corner[0][a] + s * corner[1][a]) +
           t * ((1 - s) * corner[width][a] + s * corner[width + 1][a]);
  }
  return v;
}

std::vector<Polyline> streamlines(const VectorRaster& field, double separation) {
  return Tracer(field, separation).trace();
}

}  // namespace solenoid
