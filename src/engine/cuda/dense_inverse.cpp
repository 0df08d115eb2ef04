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
  Vector<double> work(engine, Exchanged::work(count));
  Vector<int> filled(engine, Exchanged::tiles(count));
  const Exchanged exchanged = Exchanged::with(count, matrix, work.data(), filled.data());
  const Array<Exchanged> on_device(engine, {&exchanged, 1});
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

  for (std::size_t f = 0; f < fields.size(); ++f) {
    find_shift(count, matrix, fields[f].begin, fields[f].end, shifts.data() + f, stream);
    add_constants(f, false);
    const auto last = static_cast<int>(fields[f].end);
    for (auto begin = static_cast<int>(fields[f].begin); begin < last; begin += dense_tile) {
      exchange(on_device.data(), 1, count, begin, std::min(begin + dense_tile, last), stream);
    }
  }
  for (std::size_t f = 0; f < fields.size(); ++f) add_constants(f, true);  // to the inverse, negative
  negate_dense(count, matrix, inverse, stream);
  engine.synchronise();
}

template void invert_dense<float>(Engine&, std::span<const DenseField>, double*, float*, Stream);
template void invert_dense<double>(Engine&, std::span<const DenseField>, double*, double*, Stream);

}  // namespace solenoid::cuda
