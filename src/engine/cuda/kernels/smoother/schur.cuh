#pragma once
/// \file
/// The Schur complement of a batch: p = S^+ rhs for the problem of each warp, where teams have shares of rhs, which are
/// added, and all get p. Inverse blocks are matrices or tiles (SchurTiles).

#include "engine/cuda/kernels/shape.cuh"
#include "engine/cuda/kernels/smoother/parity.hpp"
#include "engine/cuda/kernels/tensor_tiles.cuh"

namespace solenoid::cuda {

/// Of a batch (batch.cuh).
template <class Batch>
struct SchurBlocks {
  using T = typename Batch::Real;
  static constexpr int block = Batch::block;
  static constexpr int patches = Batch::patches;
  static constexpr int workers = Batch::workers;
  static constexpr int teams = Batch::teams;
  static constexpr bool plain = block <= largest_plain_schur;
  static constexpr SchurTiles tiles{block};
  static constexpr int size = plain ? block * block : tiles.numbers();

  const Batch& batch;

  __device__ int number() const { return batch.schur_number(); }
  /// Of this warp's problem, for patches with that number.
  __device__ const T* inverse(int number) const {
    return batch.arguments.schur + static_cast<std::int64_t>(number * Batch::problems + batch.problem) * size;
  }
  /// A number of this team and those of the others at the same place.
  __device__ T sum_of_teams(const T* mine) const {
    T sum = *mine;
#pragma unroll
    for (int other = 1; other < teams; ++other) {
      sum += mine[((batch.team + other) % teams - batch.team) * Batch::team_numbers];
    }
    return sum;
  }
  /// Asks for the blocks of this team.
  __device__ void prefetch() const {
    constexpr int line = 128 / static_cast<int>(sizeof(T));
    const T* const from = inverse(number());
    for (int at = (batch.team * workers + batch.worker) * line; at < size; at += teams * workers * line) {
      cuda::prefetch(from + at);
    }
  }

  // --- plain ---------------------------------------------------------------------------------------------------------

  /// A problem in the registers of one thread.
  __device__ void solve_in_registers(T (&p)[block]) const {
    const T* const from = inverse(number());
    T rhs[block];
#pragma unroll
    for (int i = 0; i < block; ++i) {
      rhs[i] = p[i];
      p[i] = T(0);
    }
    constexpr int together = block % 4 == 0 ? 4 : 1;
#pragma unroll
    for (int at = 0; at < block * block; at += together) {
      T four[together];
      if constexpr (together == 4) {
        load_four(from + at, four);
      } else {
        four[0] = __ldg(from + at);
      }
#pragma unroll
      for (int k = 0; k < together; ++k) p[(at + k) / block] += four[k] * rhs[(at + k) % block];
    }
  }
  /// By the workers of a patch. p: of this lane's patch; position(i): of value i.
  template <class Position>
  __device__ void solve_plain(T* p, Position position) const {
    const T* const from = inverse(number());
    T out[(block + workers - 1) / workers]{};
#pragma unroll
    for (int j = 0; j < block; ++j) {
      const T rhs = sum_of_teams(p + position(j) * patches);
#pragma unroll
      for (int first = 0; first < block; first += workers) {
        const int i = first + batch.worker;
        if (i < block) out[first / workers] += __ldg(from + i * block + j) * rhs;
      }
    }
    __syncthreads();
#pragma unroll
    for (int first = 0; first < block; first += workers) {
      if (first + batch.worker < block) p[position(first + batch.worker) * patches] = out[first / workers];
    }
    __syncwarp();
  }

  // --- on tensor cores -----------------------------------------------------------------------------------------------

  /// A product of matrices, tiles of 16 rows x 8 patches. All patches of the warp are multiplied with the blocks of
  /// each kind among them; each keeps what is its own. Teams share the rows. p: of the warp's first patch.
  template <class Position>
  __device__ void solve_tiles(T* p, Position position) const {
    constexpr int rows = (tiles.rows + teams - 1) / teams;  // of this team: every so-manieth
    constexpr int width = (patches + 7) / 8;
    const int mine = number();
    unsigned rest = ~0U;
    while (rest != 0) {
      const int same_number = __shfl_sync(~0U, mine, __ffs(static_cast<int>(rest)) - 1);
      const unsigned same = __ballot_sync(~0U, mine == same_number);
      rest &= ~same;
      T sum[rows][width][4];
      multiply(inverse(same_number), p, position, sum);
      teams == 1 ? __syncwarp() : __syncthreads();
      unrolled<rows, width, 4>([&](int r, int w, int k) {
        const int i = (r * teams + batch.team) * 16 + k / 2 * 8 + threadIdx.x % 32 / 4;
        const int column = w * 8 + threadIdx.x % 4 * 2 + k % 2;
        if (i >= block || column >= patches || (same >> column & 1) == 0) return;
#pragma unroll
        for (int other = 0; other < teams; ++other) {
          p[position(i) * patches + column + (other - batch.team) * Batch::team_numbers] = sum[r][w][k];
        }
      });
      teams == 1 ? __syncwarp() : __syncthreads();
    }
  }
  template <class Position, int rows, int width>
  __device__ void multiply(const T* blocks, const T* p, Position position, T (&sum)[rows][width][4]) const {
    const int lane = threadIdx.x % 32;
    const T* from = blocks + batch.team * SchurTiles::tile + lane * 4;
    unrolled<rows, width, 4>([&](int r, int w, int k) { sum[r][w][k] = T(0); });
#pragma unroll(tiles.columns <= 8 ? 8 : 2)
    for (int column = 0; column < tiles.columns; ++column) {
      const int i = column * 8 + lane % 4;
      const int at[2]{i < block ? position(i) : 0, i + 4 < block ? position(i + 4) : 0};
      T b[width][2];
      unrolled<width, 2>([&](int w, int k) {
        const int of = w * 8 + lane / 4;
        const bool inside = i + 4 * k < block && (patches >= 8 || of < patches);
        b[w][k] = inside ? sum_of_teams(p + at[k] * patches + of) : T(0);
      });
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        if (r * teams + batch.team >= tiles.rows) continue;
        T a[4];
        load_four(from + (column * tiles.rows + r * teams) * SchurTiles::tile, a);
#pragma unroll
        for (int w = 0; w < width; ++w) multiply_tile(a, b[w], sum[r][w]);
      }
    }
  }
};

}  // namespace solenoid::cuda
