#pragma once
/// \file
/// Forces on boundary faces, a face in each lane of a SIMD register: a plane of points after the other, in the cells
/// and on their sides. Included by kernel instances only: everything lives in the namespace of the instruction set.
///
/// Functions are contracted across the plane, then, row by row of its points, along its slower and its faster
/// direction. What is kept of a row of points stays in the first-level cache.

#include <array>
#include <cstring>

#include "solution/face_lanes.hpp"

#ifndef SOLENOID_FORCES_NAMESPACE
#error "kernel instances define SOLENOID_FORCES_NAMESPACE"
#endif

#if defined(__AVX512F__)
#define SOLENOID_LANES 8
#elif defined(__AVX__)
#define SOLENOID_LANES 4
#else
#define SOLENOID_LANES 2
#endif

namespace solenoid::SOLENOID_FORCES_NAMESPACE {

/// A number of each face.
struct Lanes {
  static constexpr int count = SOLENOID_LANES;
  using Register [[gnu::vector_size(count * sizeof(double))]] = double;

  Register all;

  [[gnu::always_inline]] static Lanes load(const double* p) {
    Lanes result;
    std::memcpy(&result.all, p, sizeof(result.all));
    return result;
  }
  [[gnu::always_inline]] void store(double* p) const { std::memcpy(p, &all, sizeof(all)); }

  [[gnu::always_inline]] Lanes& operator+=(const Lanes& b) {
    all += b.all;
    return *this;
  }
  [[gnu::always_inline]] Lanes& operator+=(double b) {
    all += b;
    return *this;
  }
  [[gnu::always_inline]] Lanes& operator-=(const Lanes& b) {
    all -= b.all;
    return *this;
  }
  [[gnu::always_inline]] Lanes& operator*=(const Lanes& b) {
    all *= b.all;
    return *this;
  }
  [[gnu::always_inline]] Lanes& operator*=(double b) {
    all *= b;
    return *this;
  }
  [[gnu::always_inline]] friend Lanes operator+(Lanes a, const Lanes& b) { return a += b; }
  [[gnu::always_inline]] friend Lanes operator-(Lanes a, const Lanes& b) { return a -= b; }
  [[gnu::always_inline]] friend Lanes operator-(const Lanes& a) { return {-a.all}; }
  [[gnu::always_inline]] friend Lanes operator*(Lanes a, const Lanes& b) { return a *= b; }
  [[gnu::always_inline]] friend Lanes operator*(double a, Lanes b) { return b *= a; }
  [[gnu::always_inline]] friend Lanes operator*(Lanes a, double b) { return a *= b; }
  [[gnu::always_inline]] friend Lanes operator/(const Lanes& a, const Lanes& b) { return {a.all / b.all}; }
  [[gnu::always_inline]] friend Lanes operator/(double a, const Lanes& b) { return {a / b.all}; }
  [[gnu::always_inline]] friend Lanes where_positive(const Lanes& number, const Lanes& yes, const Lanes& no) {
    return {number.all > 0.0 ? yes.all : no.all};
  }
};

/// sum_i table[i] in[i stride]
[[gnu::always_inline]] inline Lanes sum_of(int count, const double* table, const Lanes* in, int stride) {
  Lanes sum = table[0] * in[0];
  for (int i = 1; i < count; ++i) sum += table[i] * in[i * stride];
  return sum;
}

/// Univariate functions of directions, where the planes are that points lie on.
struct Functions {
  const PlaceTables* layout;
  const double* tables;
  int dim;

  static constexpr int pressure = -1;
  /// Of component c in direction a.
  [[nodiscard]] int count(int c, int a) const { return a >= dim ? 1 : a == c ? layout->n + 1 : layout->n; }
  [[nodiscard]] int size(int c) const { return count(c, 0) * count(c, 1) * count(c, 2); }
  [[nodiscard]] const double* at(int place, int c, int a, bool slope = false) const {
    return tables + layout->function_at(place, a == c, slope);
  }
  [[nodiscard]] double weight(int place) const { return tables[layout->weight_at() + place]; }
  /// Points of a row along a direction, and their places.
  [[nodiscard]] int points(int a) const { return a < dim ? layout->points : 1; }
  [[nodiscard]] int place(int a, int q) const { return a < dim ? q : layout->beyond(); }
};

/// Directions of a plane, the first one faster.
struct Across {
  int normal;
  int first;
  int second;

  explicit Across(int a) : normal(a), first(a == 0 ? 1 : 0), second(a == 2 ? 1 : 2) {}
};

/// A component on a plane, by functions of its directions.
class ComponentOnPlane {
 public:
  void take(const Functions& functions, int component, const Across& plane, int place, const double* tensor,
            bool slopes) {
    functions_ = &functions;
    c_ = component;
    plane_ = &plane;
    slopes_ = slopes;
    const int count = functions.count(c_, plane.normal);
    int inner = 1;
    for (int a = 0; a < plane.normal; ++a) inner *= functions.count(c_, a);
    int outer = 1;
    for (int a = plane.normal + 1; a < 3; ++a) outer *= functions.count(c_, a);
    const double* const values = functions.at(place, c_, plane.normal);
    const double* const normal_slopes = functions.at(place, c_, plane.normal, true);
    for (int o = 0; o < outer; ++o) {
      for (int i = 0; i < inner; ++i) {
        Lanes value{};
        Lanes slope{};
        for (int j = 0; j < count; ++j) {
          const Lanes x = Lanes::load(tensor + ((o * count + j) * inner + i) * Lanes::count);
          value += values[j] * x;
          if (slopes) slope += normal_slopes[j] * x;
        }
        value_[o * inner + i] = value;
        if (slopes) slope_[o * inner + i] = slope;
      }
    }
  }
  /// visit(q, value, slopes [a] in cells of width 1) for the points of a row.
  template <class Visit>
  [[gnu::always_inline]] void row(int second_place, const Visit& visit) const {
    const int first = functions_->count(c_, plane_->first);
    const int second = functions_->count(c_, plane_->second);
    Lanes value[FaceLanes::most_functions];
    Lanes along_second[FaceLanes::most_functions];
    Lanes along_normal[FaceLanes::most_functions];
    const double* const values = functions_->at(second_place, c_, plane_->second);
    const double* const slopes = functions_->at(second_place, c_, plane_->second, true);
    for (int i = 0; i < first; ++i) {
      value[i] = sum_of(second, values, value_ + i, first);
      if (!slopes_) continue;
      along_second[i] = sum_of(second, slopes, value_ + i, first);
      along_normal[i] = sum_of(second, values, slope_ + i, first);
    }
    for (int q = 0; q < functions_->points(plane_->first); ++q) {
      const int place = functions_->place(plane_->first, q);
      const double* const at = functions_->at(place, c_, plane_->first);
      Vector3<Lanes> slope{};
      if (slopes_) {
        slope[plane_->first] = sum_of(first, functions_->at(place, c_, plane_->first, true), value, 1);
        slope[plane_->second] = sum_of(first, at, along_second, 1);
        slope[plane_->normal] = sum_of(first, at, along_normal, 1);
      }
      visit(q, sum_of(first, at, value, 1), slope);
    }
  }

 private:
  static constexpr int most = FaceLanes::most_functions * (FaceLanes::most_functions - 1);
  const Functions* functions_ = nullptr;
  int c_ = 0;
  const Across* plane_ = nullptr;
  bool slopes_ = false;
  Lanes value_[most];
  Lanes slope_[most];  // across the plane
};

/// Velocities of cells on a plane.
class VelocityOnPlane {
 public:
  explicit VelocityOnPlane(const FaceLanes& faces) : faces_(&faces) {}

  void take(const Functions& functions, const Across& plane, int place, const FaceLanes::Cells& cells,
            const ReadComponents& read) {
    read_ = read;
    const double* tensor = cells.velocity;
    for (int c = 0; c < functions.dim; ++c) {
      if (read.has(c)) components_[c].take(functions, c, plane, place, tensor, read.has_slopes(c));
      tensor += functions.size(c) * Lanes::count;
    }
    for (int a = 0; a < functions.dim; ++a) {
      inverse_widths_[a] = 1.0 / Lanes::load(cells.widths + a * Lanes::count);
    }
  }
  /// at(q): the flow at a point of a row, to be filled. What is not read is left as it is.
  template <class At>
  void row(int second_place, const At& at, int points) const {
    const int dim = faces_->tested.dim;
    for (int c = 0; c < dim; ++c) {
      if (!read_.has(c)) continue;
      components_[c].row(second_place, [&](int q, const Lanes& value, const Vector3<Lanes>& slopes) {
        FlowThereOf<Lanes>& there = at(q);
        there.u[c] = value;
        if (!read_.has_slopes(c)) return;
        for (int a = 0; a < 3; ++a) there.gradient[c][a] = slopes[a] * inverse_widths_[a];
      });
    }
    if (faces_->tested.boxes) return;
    for (int q = 0; q < points; ++q) map(at(q));
  }

 private:
  /// From those of boxes: F w / J and F W F^-1 / J.
  void map(FlowThereOf<Lanes>& there) const {
    there.u = mapped(there.u);
    Vector3<Vector3<Lanes>> pulled{};  // F^-T W^T
    for (int c = 0; c < 3; ++c) {
      for (int a = 0; a < 3; ++a) add_times(pulled[c], there.gradient[c][a], faces_->tested.across[a]);
    }
    for (int j = 0; j < 3; ++j) {
      const Vector3<Lanes> column = mapped({pulled[0][j], pulled[1][j], pulled[2][j]});
      for (int i = 0; i < 3; ++i) there.gradient[i][j] = column[i];
    }
  }
  [[nodiscard]] Vector3<Lanes> mapped(const Vector3<Lanes>& w) const {
    Vector3<Lanes> u{};
    for (int i = 0; i < 3; ++i) u[i] = dot_product(faces_->image[i], w);
    return u;
  }

  const FaceLanes* faces_;
  ReadComponents read_;
  Vector3<Lanes> inverse_widths_{};
  std::array<ComponentOnPlane, 3> components_;
};

class FacesOnSide {
 public:
  static void add_up(const FaceLanes& faces, FaceSums& result) { FacesOnSide(faces).add_to(result); }

 private:
  explicit FacesOnSide(const FaceLanes& faces)
      : faces_(faces),
        tested_(faces.tested),
        functions_{&faces.layout, faces.tables, faces.tested.dim},
        velocity_(faces),
        other_(faces) {
    for (int a = 0; a < dim(); ++a) {
      widths_[a] = Lanes::load(faces.cells.widths + a * Lanes::count);
      corner_[a] = Lanes::load(faces.corner + a * Lanes::count);
    }
  }

  void add_to(FaceSums& result) {
    if (faces_.faces[faces_.side] == Face::outflow) {
      add_side(faces_.side);
    } else {
      add_inside();
      for (int side = 0; side < 2 * dim(); ++side) {
        if (tested_.counts(side, faces_.side)) add_side(side);
      }
      rows_.hat.store(result.rows[0].data());
      for (int a = 0; a < 3; ++a) rows_.way[a].store(result.rows[1 + a].data());
    }
    auto to = result.sums.begin();
    for (const Vector3<Lanes>* part : {&sums_.force, &sums_.torque, &sums_.pressure, &sums_.viscous}) {
      for (int c = 0; c < 3; ++c) (*part)[c].store((to++)->data());
    }
  }

  [[nodiscard]] int dim() const { return tested_.dim; }
  [[nodiscard]] int points_inside() const { return functions_.points(0) * functions_.points(1) * functions_.points(2); }
  [[nodiscard]] int points_on_side() const { return points_inside() / functions_.points(0); }
  [[nodiscard]] const Point& along() const { return tested_.edge[faces_.side / 2]; }

  [[nodiscard]] Vector3<Lanes> values_at(const double* values, int points, int q) const {
    Vector3<Lanes> result{};
    for (int c = 0; c < dim(); ++c) result[c] = Lanes::load(values + (c * points + q) * Lanes::count);
    return result;
  }
  /// In [0, 1], of a point of a plane.
  [[nodiscard]] Point reference(const Across& plane, int place, int first, int second) const {
    Point xi{};
    xi[plane.normal] = faces_.tables[place];
    xi[plane.first] = faces_.tables[first];
    xi[plane.second] = faces_.tables[second];
    return xi;
  }

  void add_inside() {
    const Across plane(dim() - 1);
    Lanes measure = faces_.measure * widths_[0];
    for (int a = 1; a < dim(); ++a) measure *= widths_[a];
    InsideThereOf<Lanes> with{.mass = Lanes::load(faces_.mass)};
    int q = 0;
    for (int place = 0; place < functions_.points(plane.normal); ++place) {
      velocity_.take(functions_, plane, place, faces_.cells, tested_.read_inside(faces_.side));
      pressure_.take(functions_, Functions::pressure, plane, place, faces_.pressure, false);
      if (faces_.change != nullptr) {
        other_.take(functions_, plane, place, {faces_.cells.widths, faces_.change},
                    tested_.read_of_change(faces_.side));
      }
      for (int j = 0; j < functions_.points(plane.second); ++j) {
        const int second = functions_.place(plane.second, j);
        take_row(plane, second, true);
        if (faces_.change != nullptr) {
          other_.row(
              second, [&](int i) -> auto& { return there_[i].behind; }, functions_.points(plane.first));
        }
        for (int i = 0; i < functions_.points(plane.first); ++i, ++q) {
          const int first = functions_.place(plane.first, i);
          if (faces_.change != nullptr) with.change = there_[i].behind.u;
          with.force = values_at(faces_.force, points_inside(), q);
          with.viscosity = Lanes::load(faces_.viscosity + q * Lanes::count);
          const double weight = functions_.weight(place) * row_weight(plane, first, second);
          tested_.add(rows_, faces_.side, tested_.inside(along(), here_[i], with), weight * measure,
                      reference(plane, place, first, second), widths_);
        }
      }
    }
  }

  void add_side(int side) {
    const Across plane(side / 2);
    const int place = faces_.layout.end(side % 2);
    const bool is_own = side == faces_.side;
    const bool no_jump = side / 2 == faces_.side / 2;
    const Face face = faces_.faces[side];
    Lanes measure{};
    measure += faces_.areas[plane.normal];
    for (const int a : {plane.first, plane.second}) {
      if (a < dim()) measure *= widths_[a];
    }
    const Lanes penalty = tested_.penalty_of(side, widths_[plane.normal]);
    velocity_.take(functions_, plane, place, faces_.cells, tested_.read_on(side, faces_.side));
    if (is_own) pressure_.take(functions_, Functions::pressure, plane, place, faces_.pressure, false);
    if (face == Face::interior) {
      other_.take(functions_, plane, faces_.layout.end(1 - side % 2), faces_.behind[side],
                  tested_.read_behind(side, faces_.side));
    }
    int q = 0;
    for (int j = 0; j < functions_.points(plane.second); ++j) {
      const int second = functions_.place(plane.second, j);
      take_row(plane, second, is_own);
      if (face == Face::interior) {
        other_.row(
            second, [&](int i) -> auto& { return there_[i].behind; }, functions_.points(plane.first));
      }
      for (int i = 0; i < functions_.points(plane.first); ++i, ++q) {
        const int first = functions_.place(plane.first, i);
        SideThereOf<Lanes>& there = there_[i];
        there.face = face;
        there.penalty = penalty;
        there.viscosity =
            Lanes::load(faces_.viscosity + (points_inside() + side * points_on_side() + q) * Lanes::count);
        if (face != Face::interior) there.data = values_at(faces_.data[side], points_on_side(), q);
        const Point xi = reference(plane, place, first, second);
        const Lanes weight = row_weight(plane, first, second) * measure;
        if (is_own) {
          Vector3<Lanes> box = corner_;
          for (int a = 0; a < dim(); ++a) box[a] += xi[a] * widths_[a];
          tested_.add(sums_, side, here_[i], there, weight, tested_.lever(box));
        }
        tested_.add(rows_, faces_.side, tested_.on(side, along(), no_jump, here_[i], there), weight, xi, widths_);
      }
    }
  }

  void take_row(const Across& plane, int second, bool with_pressure) {
    velocity_.row(
        second, [&](int i) -> auto& { return here_[i]; }, functions_.points(plane.first));
    if (!with_pressure) return;
    pressure_.row(second, [&](int i, const Lanes& value, const Vector3<Lanes>&) { here_[i].p = value; });
  }
  [[nodiscard]] double row_weight(const Across& plane, int first, int second) const {
    return (plane.first < dim() ? functions_.weight(first) : 1.0) *
           (plane.second < dim() ? functions_.weight(second) : 1.0);
  }

  const FaceLanes& faces_;
  const TestedFlow& tested_;
  Functions functions_;
  Vector3<Lanes> widths_{};
  Vector3<Lanes> corner_{};
  VelocityOnPlane velocity_;
  VelocityOnPlane other_;  // in cells behind, or du/dt
  ComponentOnPlane pressure_;
  FlowThereOf<Lanes> here_[FaceLanes::most_points]{};   // of a row,
  SideThereOf<Lanes> there_[FaceLanes::most_points]{};  // and what is behind the points
  RowsOf<Lanes> rows_{};
  ForceSumsOf<Lanes> sums_{};
};

}  // namespace solenoid::SOLENOID_FORCES_NAMESPACE
