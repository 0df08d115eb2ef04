#include "engine/cpu/transfers.hpp"

#include "engine/cpu/cell_shares.hpp"
#include "engine/tables.hpp"

namespace solenoid::cpu {

template <class T>
const Unset<Record>& Transfers<T>::children(const Level& coarse) {
  if (children_.empty()) children_ = children_of(level_, coarse);
  return children_;
}

template <class T>
void Transfers<T>::run(const Level& coarse, const T* from, T* to, void (*kernel)(const TransferArguments<T>&)) {
  const Record* children_data = children(coarse).data();
  team_.run([&](int t) {
    const auto range = team_.range(coarse.grid.layout().near_cells().size(), t, interleave);
    const TransferArguments<T> arguments{
        &cell_,
        topology_of(coarse.grid),
        children_data,
        level_.grid.layout().null(),
        {level_.coarsening.merges(0), level_.coarsening.merges(1), level_.coarsening.merges(2)},
        static_cast<Record>(range.begin),
        static_cast<Record>(range.end),
        from,
        to};
    kernel(arguments);
  });
}

/// visit(index) for every hat of the coarse hat-only records.
template <class T>
template <class F>
void Transfers<T>::for_hat_only(const Level& coarse, F&& visit) {
  const int block = power(level_.equation.n(), level_.equation.dim);
  const int columns = power(level_.equation.n(), level_.equation.dim - 1);
  for (const Record hat : coarse.grid.layout().hats()) {
    for (int i = 0; i < columns; ++i) visit(coarse.index(hat, coarse.grid.hat_direction(hat) * block + i));
  }
}

/// couple(coarse index, fine index, weight) for the hats of coarse hat-only records.
template <class T>
template <class F>
void Transfers<T>::couple_hat_only(const Level& coarse, FineHat which, F&& couple) {
  const Equation& equation = level_.equation;
  const int dim = equation.dim;
  const int n = equation.n();
  const int block = power(n, dim);
  const int columns = power(n, dim - 1);
  for (const Record hat : coarse.grid.layout().hats()) {
    const int c = coarse.grid.hat_direction(hat);
    const bool refined = level_.coarsening.merges(c);
    if (!refined && which == FineHat::middle) continue;
    const int row = which == FineHat::same_face ? n : 0;  // of the upper child
    const T own = refined ? cell_.embed_p[1][row][n] : T(1);
    const Record cell = coarse.grid.neighbour(hat, 2 * c);
    for (int bits = 0; bits < 1 << dim; ++bits) {
      if (((bits >> c & 1) != 0) != refined) continue;
      const Record child = children(coarse)[(static_cast<std::size_t>(cell) << dim) + bits];
      if (child == level_.grid.layout().null()) continue;
      const Record fine = which == FineHat::same_face ? level_.grid.neighbour(child, 2 * c + 1) : child;
      const auto embed = [&](int direction, int fine_mode, int coarse_mode) -> T {
        if (!level_.coarsening.merges(direction)) return fine_mode == coarse_mode ? T(1) : T(0);
        return cell_.embed_o[bits >> direction & 1][fine_mode][coarse_mode];
      };
      for (int j = 0; j < columns; ++j) {
        for (int i = 0; i < columns; ++i) {
          const T tangential =
              embed((c + 1) % dim, i % n, j % n) * (dim == 3 ? embed((c + 2) % dim, i / n, j / n) : T(1));
          couple(coarse.index(hat, c * block + j), level_.index(fine, c * block + i), own * tangential);
        }
      }
    }
  }
}

template <class T>
void Transfers<T>::restrict_to(const Level& coarse, const T* fine_vector, T* coarse_vector) {
  run(coarse, fine_vector, coarse_vector, table_.restrict_to);
  for_hat_only(coarse, [&](std::int64_t coarse_index) { coarse_vector[coarse_index] = T(0); });
  const auto gather = [&](std::int64_t coarse_index, std::int64_t fine_index, T weight) {
    coarse_vector[coarse_index] += weight * fine_vector[fine_index];
  };
  couple_hat_only(coarse, FineHat::same_face, gather);
  couple_hat_only(coarse, FineHat::middle, gather);
}

template <class T>
void Transfers<T>::prolong_add(const Level& coarse, const T* coarse_vector, T* fine_vector) {
  run(coarse, coarse_vector, fine_vector, table_.prolong_add);
  // The kernel has seen to the middle hats already.
  couple_hat_only(coarse, FineHat::same_face, [&](std::int64_t coarse_index, std::int64_t fine_index, T weight) {
    fine_vector[fine_index] += weight * coarse_vector[coarse_index];
  });
}

template class Transfers<float>;
template class Transfers<double>;

}  // namespace solenoid::cpu
