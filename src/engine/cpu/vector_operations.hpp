#pragma once
/// \file
/// Vector operations of the cpu engine. Every thread always has the same part of a vector, and sums are added in a
/// fixed order.

#include "engine/cpu/team.hpp"
#include "engine/engine.hpp"

namespace solenoid::cpu {

/// The part of Kernels that knows vectors only.
template <class T>
class VectorOperations : public Kernels<T> {
 public:
  VectorOperations(Team& team, const Level& level) : team_(team), level_(level) {}

  [[nodiscard]] const Level& level() const final { return level_; }

  void zero(T* x) final;
  void copy(const T* x, T* y) final;
  void scale(T a, const T* x, T* y) final;
  void axpy(T a, const T* x, T* y) final;
  void dots(int count, const T* const* v, const T* w, double* result) final;
  void axpys(int count, const double* a, const T* const* v, double scale, T* w) final;
  void two_sums(int count, const T* const* v, const double* a, T* x, const double* b, T* y) final;
  double l2_norm(const T* x) final;
  void project(T* x) final;
  void gather(std::int64_t count, const std::int64_t* index, const T* x, T* values) final;
  void scatter(std::int64_t count, const std::int64_t* index, const T* values, T* x) final;
  void scatter_add(std::int64_t count, const std::int64_t* index, const T* values, T* x) final;
  void pack(std::span<const PackedRecords> what, const T* x, T* values) final;
  void unpack(std::span<const PackedRecords> what, const T* values, T* x) final;
  void sum_constants(const T* x, double* sums) final;
  void remove_constants(const double* sums, T* x) final;
  void dense(std::int64_t count, const std::int64_t* index, const T* matrix, const T* b, T* x) final;
  void invert_dense(std::span<const DenseField> fields, double* matrix, T* inverse) final;

  void from_double(const double* x, T* y) final;
  void from_float(const float* x, T* y) final;
  void axpys_float(int count, const double* a, const float* const* v, T* w) final;

 protected:
  Team& team_;
  const Level& level_;

 private:
  template <class F>
  void for_range(F&& f);
  template <class Move>
  void for_packed(std::span<const PackedRecords> what, const Move& move);
  template <class S>
  void add_all(int count, const double* a, const S* const* v, T scale, T* w);
  template <class S>
  void convert(const S* x, T* y);
  /// visit(value) for the constant mode of records that carry a constant, by thread t.
  template <class V, class Visit>
  void for_carriers(const Constant& constant, int t, V* x, Visit visit, bool owned) const;
};

}  // namespace solenoid::cpu
