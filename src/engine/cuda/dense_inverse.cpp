#include "engine/cuda/dense_inverse.hpp"

#include <algorithm>
#include <vector>

#include "engine/cuda/dense.hpp"
#include "engine/cuda/device_level.hpp"

namespace solenoid::cuda {

/// The steps of engine/dense_inverse.cpp.
template <class T>
void invert_dense(Engine& engine, std::span<const DenseField> fields, double* matrix, T* inverse, Stream stream) {
  const std::int64_t count = fields.back().end;
  const std::int64_t tiles = (count + dense_tile - 1) / dense_tile;
  constexpr std::int64_t tile_size = std::int64_t{dense_tile} * dense_tile;
  Vector<double> work(engine, (2 * tiles + 1) * tile_size);
  Vector<int> filled(engine, tiles);
  Vector<double> shifts(engine, std::ssize(fields));
  std::vector<std::vector<Array<std::int64_t>>> constants(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    for (const auto& constant : fields[f].constants) constants[f].emplace_back(engine, constant);
  }
  const auto add_constants = [&](std::size_t f, bool inverted) {
    for (std::size_t i = 0; i < constants[f].size(); ++i) {
      const std::int64_t size = std::ssize(fields[f].constants[i]);
      add_constant(count, matrix, size, constants[f][i].data(), shifts.data() + f, inverted, stream);
    }
  };

  Exchange step{.count = count,
                .matrix = matrix,
                .begin = 0,
                .end = 0,
                .pivot = work.data(),
                .columns = work.data() + tile_size,
                .solved = work.data() + (tiles + 1) * tile_size,
                .filled = filled.data()};
  for (std::size_t f = 0; f < fields.size(); ++f) {
    find_shift(count, matrix, fields[f].begin, fields[f].end, shifts.data() + f, stream);
    add_constants(f, false);
    for (step.begin = static_cast<int>(fields[f].begin); step.begin < fields[f].end; step.begin = step.end) {
      step.end = static_cast<int>(std::min<std::int64_t>(step.begin + dense_tile, fields[f].end));
      exchange(step, stream);
    }
  }
  for (std::size_t f = 0; f < fields.size(); ++f) add_constants(f, true);  // to the inverse, negative
  negate_dense(count, matrix, inverse, stream);
  engine.synchronise();
}

template void invert_dense<float>(Engine&, std::span<const DenseField>, double*, float*, Stream);
template void invert_dense<double>(Engine&, std::span<const DenseField>, double*, double*, Stream);

}  // namespace solenoid::cuda
