#pragma once
/// \file
/// Messages that kernels of the cuda engine exchange themselves.

#include <vector>

#include "engine/cuda/messages.hpp"
#include "engine/engine.hpp"

namespace solenoid::cuda {

class MessagesInKernel final : public KernelMessages {
 public:
  /// Thread blocks for all peers, at most: the kernel's others work beside them.
  static constexpr int most_blocks = 96;
  static constexpr int block_threads = 256;  ///< or fewer

  MessagesInKernel(Engine& engine, const RecordExchange& messages)
      : exchange_(on_device(engine, std::vector{ExchangeInKernel{messages, 0, 0, 0}})), blocks_(messages.blocks()) {}
  template <class T>
  [[nodiscard]] Bringing<T> of(T* vector) {
    return {.exchange = exchange_.data(), .vector = vector, .blocks = blocks_};
  }

 private:
  Vector<ExchangeInKernel> exchange_;
  int blocks_;
};

}  // namespace solenoid::cuda
