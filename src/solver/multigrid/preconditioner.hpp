#pragma once
/// \file
/// The preconditioner M of all methods: one multigrid cycle, in a precision of its own.

#include <memory>
#include <type_traits>

#include "engine/engine.hpp"
#include "solver/hierarchy.hpp"
#include "solver/multigrid/cycle.hpp"

namespace solenoid {

/// What does not depend on the precision of the cycle.
class Preconditioner {
 public:
  virtual ~Preconditioner() = default;
  /// Kernels of the finest level in double precision.
  virtual Kernels<double>& outer() = 0;
  /// z = M r; may be in place.
  virtual void apply(const double* r, double* z) = 0;
  /// As Cycle::make_tables and Cycle::use_tables, of the outer kernels, too.
  [[nodiscard]] virtual std::shared_ptr<CoefficientTables> make_tables() = 0;
  virtual std::shared_ptr<CoefficientTables> use_tables(const std::shared_ptr<CoefficientTables>& tables) = 0;
};

/// With the cycle in precision S.
template <class S>
class CyclePreconditioner final : public Preconditioner {
 public:
  CyclePreconditioner(Engine& engine, const Hierarchy& hierarchy, const SolverOptions& options)
      : finest_(hierarchy.size() - 1), cycle_(engine, hierarchy, cycle_of(options)) {
    if (!std::is_same_v<S, double> || hierarchy.finest().has_viscosity_points()) {
      outer_ = make_kernels<double>(engine, hierarchy.finest(), options.multigrid.local_solver);
      outer_->take_points();
    }
    cycle_.record(finest_);
  }

  [[nodiscard]] Cycle<S>& cycle() { return cycle_; }
  Kernels<double>& outer() override {
    if constexpr (std::is_same_v<S, double>) {
      if (outer_ == nullptr) return cycle_.kernels();
    }
    return *outer_;
  }

  /// M r on levels 0..level, for r on that level. It lives until the next one.
  const S* of(int level, const double* r) {
    cycle_.kernels(level).from_double(r, cycle_.right_hand_side(level));
    return cycle_.run(level);
  }
  const S* of(const double* r) { return of(finest_, r); }

  /// M (b - A x), where `kernels`, of that level, round residuals as they write them: first whether they do (then
  /// their norm_of_rounded() is that of the residual), then the result.
  bool take_residual(int level, Kernels<double>& kernels, const double* b, const double* x) {
    if constexpr (std::is_same_v<S, float>) {
      if (kernels.rounds_residuals()) {
        kernels.residual_rounded(b, x, cycle_.right_hand_side(level));
        return true;
      }
    }
    return false;
  }
  const S* of_taken(int level) { return cycle_.run(level); }
  bool take_residual(const double* b, const double* x) { return take_residual(finest_, outer(), b, x); }
  const S* of_taken() { return of_taken(finest_); }

  void apply(const double* r, double* z) override {
    if constexpr (std::is_same_v<S, double>) {
      outer().copy(of(r), z);
    } else {
      outer().from_float(of(r), z);
    }
  }

  [[nodiscard]] std::shared_ptr<CoefficientTables> make_tables() override {
    auto tables = tables_by<Tables>(this);
    tables->cycle = cycle_.make_tables();
    if (outer_ != nullptr) tables->outer = outer_->make_tables();
    return tables;
  }
  std::shared_ptr<CoefficientTables> use_tables(const std::shared_ptr<CoefficientTables>& tables) override {
    const auto mine = made_as<Tables>(tables, this);
    auto before = tables_by<Tables>(this);
    before->cycle = cycle_.use_tables(mine->cycle);
    if (outer_ != nullptr) before->outer = outer_->use_tables(mine->outer);
    return before;
  }

 private:
  struct Tables final : CoefficientTables {
    std::shared_ptr<CoefficientTables> cycle;
    std::shared_ptr<CoefficientTables> outer;
  };

  int finest_;
  Cycle<S> cycle_;
  /// If the cycle has others: of another precision, or with the viscosity of cells where this has that at points.
  std::unique_ptr<Kernels<double>> outer_;
};

/// x += correction, in the precision that a cycle left it in.
template <class S>
void add(Kernels<double>& kernels, const S* correction, double* x) {
  if constexpr (std::is_same_v<S, double>) {
    kernels.axpy(1.0, correction, x);
  } else {
    constexpr double one = 1.0;
    kernels.axpys_float(1, &one, &correction, x);
  }
}

}  // namespace solenoid
