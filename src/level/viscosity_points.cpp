#include "level/viscosity_points.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "element/basis.hpp"

namespace solenoid {
namespace {

/// Of a line of logarithms `stride` apart, by these factors and within bounds.
double along_line(const double* logarithms, int stride, const std::vector<double>& factors) {
  double least = logarithms[0];
  double most = logarithms[0];
  double sum = 0.0;
  for (std::size_t q = 0; q < factors.size(); ++q) {
    const double value = logarithms[q * stride];
    least = std::min(least, value);
    most = std::max(most, value);
    sum += factors[q] * value;
  }
  const double beyond = 0.5 * (most - least);
  return std::clamp(sum, least - beyond, most + beyond);
}

void take_logarithms(const double* values, int count, std::vector<double>& logarithms) {
  logarithms.resize(count);
  std::transform(values, values + count, logarithms.begin(), [](double value) { return std::log(value); });
}

}  // namespace

ViscosityPoints::ViscosityPoints(int dim, int order, Unset<double> values)
    : dim_(dim),
      in_cell_(in_cell(dim, order)),
      places_(gauss(viscosity_points(order)).points),
      values_(std::move(values)) {
  ends_ = interpolation({0.0, 1.0});
}

ViscosityPoints::Interpolation ViscosityPoints::interpolation(const std::vector<double>& places) const {
  Interpolation result;
  for (const double xi : places) {
    std::vector<double>& factors = result.emplace_back(places_.size(), 1.0);
    for (std::size_t q = 0; q < places_.size(); ++q) {
      for (std::size_t r = 0; r < places_.size(); ++r) {
        if (r != q) factors[q] *= (xi - places_[r]) / (places_[q] - places_[r]);
      }
    }
  }
  return result;
}

void ViscosityPoints::trace(Record cell, int side, double* values) const {
  thread_local std::vector<double> logarithms;
  take_logarithms(of_cell(cell), in_cell_, logarithms);
  trace(logarithms, side, values);
}

void ViscosityPoints::traces(Record cell, double* values) const {
  thread_local std::vector<double> logarithms;
  take_logarithms(of_cell(cell), in_cell_, logarithms);
  for (int side = 0; side < 2 * dim_; ++side) trace(logarithms, side, values + side * on_face());
}

void ViscosityPoints::trace(const std::vector<double>& logarithms, int side, double* values) const {
  const int m = per_direction();
  const int stride = power(m, side / 2);
  for (int slow = 0; slow < in_cell_ / (stride * m); ++slow) {
    for (int fast = 0; fast < stride; ++fast) {
      *values++ = std::exp(along_line(&logarithms[slow * stride * m + fast], stride, ends_[side % 2]));
    }
  }
}

void ViscosityPoints::evaluate(Record cell, const std::array<Interpolation, 3>& places,
                               std::vector<double>& values) const {
  const int m = per_direction();
  take_logarithms(of_cell(cell), in_cell_, values);
  std::vector<double> next;
  int inner = 1;  // places so far
  int outer = in_cell_;
  for (int a = 0; a < dim_; ++a) {
    outer /= m;
    next.clear();
    for (int o = 0; o < outer; ++o) {
      for (const std::vector<double>& factors : places[a]) {
        for (int i = 0; i < inner; ++i) next.push_back(along_line(&values[o * m * inner + i], inner, factors));
      }
    }
    inner *= static_cast<int>(places[a].size());
    values.swap(next);
  }
  for (double& value : values) value = std::exp(value);
}

}  // namespace solenoid
