#pragma once
/// \file
/// The vectors of Krylov methods.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

#include "engine/engine.hpp"
#include "solver/vector_needs.hpp"

namespace solenoid {

/// z = M r for the preconditioner M; S is the precision it works in.
template <class T, class S>
using Precondition = std::function<void(const T* r, S* z)>;

/// How many vectors a Krylov method needs, all of the level that it works on.
struct KrylovVectors {
  int basis = 0;           ///< in the precision T of the method
  int preconditioned = 0;  ///< in the precision S of a flexible preconditioner
  int work = 0;            ///< in T: one or none
  int previous = 0;        ///< the same
};

/// The vectors. They are kept for the next solve; what is reserved need not be allocated during one.
template <class T, class S = T>
struct KrylovSpace {
  std::vector<Vector<T>> v;  ///< orthonormal basis
  std::vector<Vector<S>> z;  ///< preconditioned basis
  Vector<T> work;
  Vector<T> previous;  ///< what the round before a restart made of x

  void reserve(Engine& engine, std::int64_t size, const KrylovVectors& needed) {
    grow(engine, size, needed.basis, v);
    grow(engine, size, needed.preconditioned, z);
    if (needed.work > 0 && work.size() == 0) work = Vector<T>(engine, size);
    if (needed.previous > 0 && previous.size() == 0) previous = Vector<T>(engine, size);
  }
  /// What that takes, if the method works on the finest level.
  static VectorNeeds needs(const KrylovVectors& needed) {
    return on_finest<T>(needed.basis + needed.work + needed.previous) + on_finest<S>(needed.preconditioned);
  }

 private:
  template <class V>
  static void grow(Engine& engine, std::int64_t size, int count, V& vectors) {
    while (static_cast<int>(vectors.size()) < count) vectors.emplace_back(engine, size);
  }
};

/// w as sum_i along[i] v[i], i < count, plus along[count] times the vector that is to follow these.
struct Components {
  std::vector<double> along;
  std::vector<double> removed;  ///< what the next vector still has of the others, negative; empty if it is there
};

/// The components of w along v[0..count), by classical Gram-Schmidt. One pass for all products, and the norm of what is
/// left is that of w less that of what is removed, as long as that suffices; then w is left as it is, and make_next()
/// is another pass for who needs the vector. `skew` bounds what the basis so far lacks to be orthonormal: cancellation
/// magnifies it from vector to vector; before it exceeds `enough`, the vector is orthogonalised once more.
template <class T>
Components components(Kernels<T>& kernels, const std::vector<Vector<T>>& v, int count, T* w, double& skew) {
  constexpr double enough = 1e-5;
  std::vector<const T*> factors(count + 1);  // the last one is w itself, for its norm
  for (int i = 0; i < count; ++i) factors[i] = v[i].data();
  factors[count] = w;
  std::vector<double> h(count + 1, 0.0);
  constexpr int passes = 2;
  for (int pass = 1; pass <= passes; ++pass) {
    std::vector<double> product(count + 1);
    kernels.dots(count + 1, factors.data(), w, product.data());
    const double before = product[count];
    product.pop_back();
    double left = before;
    for (double& along : product) {
      h[&along - product.data()] += along;
      left -= along * along;
      along = -along;
    }
    const double magnified = (skew + std::numeric_limits<T>::epsilon()) * before;
    if (left > 0.0 && magnified <= enough * left) {
      skew = std::max(skew, magnified / left);
      h[count] = std::sqrt(left);
      return {std::move(h), std::move(product)};
    }
    kernels.axpys(count, product.data(), factors.data(), 1.0, w);
  }
  h[count] = std::sqrt(kernels.dot(w, w));
  if (h[count] > 0.0) kernels.scale(static_cast<T>(1.0 / h[count]), w, w);
  return {std::move(h), {}};
}

/// Makes w, of which these are the components(), the next vector: normalised, and orthogonal to v.
template <class T>
void make_next(Kernels<T>& kernels, const std::vector<Vector<T>>& v, const Components& of, T* w) {
  if (of.removed.empty()) return;
  std::vector<const T*> factors(of.removed.size());
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = v[i].data();
  kernels.axpys(static_cast<int>(factors.size()), of.removed.data(), factors.data(), 1.0 / of.along.back(), w);
}

/// x += sum_i y[i] v[i], i < y.size().
template <class T, class S>
void add_combination(Kernels<T>& kernels, const std::vector<double>& y, const std::vector<Vector<S>>& v, T* x) {
  std::vector<const S*> vectors(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) vectors[i] = v[i].data();
  const int count = static_cast<int>(y.size());
  if constexpr (std::is_same_v<T, S>) {
    kernels.axpys(count, y.data(), vectors.data(), 1.0, x);
  } else {
    kernels.axpys_float(count, y.data(), vectors.data(), x);
  }
}

}  // namespace solenoid
