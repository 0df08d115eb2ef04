#pragma once
/// \file
/// The smoother with the exact local solve: new values of a patch from b, what lies around it and its old pressure,
/// without its old velocity.
///
/// With the local matrix A~ (u: velocity, p: pressure of the patch; e: what lies around it),
///     new u, new p - p = A~^+ (b - A_e x_e + B^T p + (A~ - A_u) u),
/// where A~ - A_u lives on the faces at which the local matrix has another weight than the mesh. There the patch's own
/// modes count like those of a cell beyond that is their mirror image. The old pressure stays in, though without it
/// there would be less to read: forces are mostly gradients, and in single precision the velocity would be what is left
/// of much larger numbers.
///
/// Sums and differences of the two cells in each direction split every field of a patch into 2^dim classes of n^dim
/// numbers, and most local problems into as many of their own: the velocity component c of a class meets the pressure
/// of the class with the other parity in direction c. Those of patches with a slip or outflow end do not split so:
/// their right-hand sides are put together in classes, too, but solved for as a whole (WholePatches). Lanes are
/// patches; one register of lanes after the other.
///
/// A class of a velocity component is numbered by its parities in directions c (bit 0), a = c + 1 (bit 1) and b = c + 2
/// (bit 2), modulo dim; that of a pressure by those in x, y, z. Arrays of a class: velocity [row][i_b][i_a], the rows
/// of P being bubbles 1..k, then the middle hat (even ones only); in the eigenbasis the same with eigenfunctions. Hats
/// on the ends, where they are unknowns (outflow), [i_b][i_a]. Pressure [i_z][i_y][i_x].
///
/// Right-hand sides need no matrices of the local problem, so that a batch has patches of any: of a row of cells, those
/// at its ends too. What most lanes have is solved at once; other patches wait until there are enough with their
/// problem. So every record is read by one batch of its colour, as a whole.
///
/// Traffic per number of the patch and colour: b, x and y once, 12 bytes in single precision, 16 where y is read before
/// it is written.

#include <array>

#include "engine/cpu/kernels/halo_fields.hpp"
#include "engine/cpu/kernels/operator.hpp"
#include "engine/cpu/kernels/whole_patches.hpp"

namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE {

template <class T, int dim, int order>
struct HaloWork {
  static constexpr int n = order + 1;
  static constexpr int classes = 1 << dim;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int block = power(n, dim);
  using R = typename Simd<T>::Register;
  struct alignas(SOLENOID_SIMD_BYTES) Lines {
    T values[block * interleave];
  };
  HaloFields<R, dim, order> fields;
  R schur[classes][block];             ///< -B A^-1 f, then the pressure in the eigenbasis
  R rows[classes][(n + 1) * columns];  ///< what lies around gives to all rows of a component, before the mass matrix
  R ends[classes][columns];            ///< hats on the ends in direction c
  // Of cells that are neither a block nor a pair:
  Lines cells[classes];
  Lines hats[classes];
  Lines own[classes];
  Lines own_hats[classes];
  typename WholePatches<T, dim, order>::Arrays whole;
  LanePlaces places[2][PatchPlaces::count(dim)];  // of batches that do not share theirs
  LanePlaces waiting[classes];                    // of cells of patches that waited
};

template <class T, int dim, int order>
class HaloSmoother {
 public:
  static constexpr int n = order + 1;
  static constexpr int modes = 2 * n;
  static constexpr int classes = 1 << dim;
  static constexpr int columns = power(n, dim - 1);
  static constexpr int others = power(n, dim - 2);
  static constexpr int block = power(n, dim);
  static constexpr int record = record_size(dim, order);
  using V = Simd<T>;
  using R = typename V::Register;
  using Work = HaloWork<T, dim, order>;
  using Waiting = WaitingPatches<T, dim, order>;
  using Places = Blocks<record>;
  using Reader = typename Places::template Reader<T>;
  using Writer = typename Places::template Writer<T>;

  /// Bytes of memory for `problems` local problems.
  static std::int64_t workspace_bytes(int problems) {
    return static_cast<std::int64_t>(sizeof(Work)) + problems * static_cast<std::int64_t>(sizeof(Waiting));
  }

  static void smooth(const HaloArguments<T>& arguments) {
    HaloSmoother smoother(arguments);
    if (arguments.begin == arguments.first) {
      for (int problem = 0; problem < arguments.problem_count; ++problem) smoother.waiting_[problem].clear();
    }
    const auto addresses = [&](std::int64_t index) {
      return Addresses(arguments, arguments.batches[index], smoother.work_.places[index % 2]);
    };
    Addresses of_turns[2];
    of_turns[0] = addresses(arguments.begin);
    for (std::int64_t index = arguments.begin; index < arguments.end; ++index) {
      const std::int64_t turn = (index - arguments.begin) % 2;
      if (index + 1 < arguments.last) {
        of_turns[1 - turn] = addresses(index + 1);
        smoother.ahead_ = Ahead(arguments, of_turns[1 - turn], arguments.batches[index + 1].last_lane);
      } else {
        smoother.ahead_ = Ahead();
      }
      for (int lane = 0; lane < width; lane += V::lanes) {
        smoother.smooth(arguments.batches[index], of_turns[turn], lane);
      }
    }
    if (arguments.end != arguments.last) return;
    for (int problem = 0; problem < arguments.problem_count; ++problem) {
      while (smoother.waiting_[problem].count() > 0) smoother.solve_waiting(problem);
    }
  }

 private:
  static constexpr int a_of(int c) { return (c + 1) % dim; }
  static constexpr int b_of(int c) { return (c + 2) % dim; }
  /// Rows of P: bubbles, the middle hat and, of what lies around, the hat on the end, as the lower cell has them.
  static constexpr int middle = order;
  static constexpr int end = n;
  static constexpr int function_of(int row) { return row < order ? row + 1 : row == middle ? n : 0; }

  /// Where the cells of a batch of patches and those around them lie.
  class Addresses {
   public:
    Addresses() = default;
    /// `found` has room for places that batches do not share.
    Addresses(const HaloArguments<T>& arguments, const PatchLanes& batch, LanePlaces* found)
        : base_(batch.lower[0] / width), places_(found) {
      if (batch.places == PatchLanes::unknown) {
        find_patch_places<dim>(arguments.topology, batch, found);
      } else {
        places_ = arguments.places + batch.places * PatchPlaces::count(dim);
      }
      pairs_ = false;
      for (int bits = 0; bits < classes; ++bits) pairs_ |= own(bits).pair();
    }

    [[nodiscard]] bool pairs() const { return pairs_; }  ///< among its own cells
    [[nodiscard]] Places own(int bits) const { return {places_[PatchPlaces::own(bits)], base_}; }
    /// The cells beyond the end in direction t.
    [[nodiscard]] Places beyond(int t, int bits) const { return {places_[PatchPlaces::beyond(dim, t, bits)], base_}; }
    /// Of component c, cells above those beyond, for upper cells.
    [[nodiscard]] Places above(int c, int tau, int bits) const {
      return {places_[PatchPlaces::above(dim, c, tau, bits)], base_};
    }

   private:
    std::int32_t base_;
    bool pairs_;
    const LanePlaces* places_;
  };

  /// Blocks of the next batch, fetched into the second-level cache while this one is worked on.
  class Ahead {
   public:
    Ahead() = default;
    /// The batch has a patch in lane `lane`.
    Ahead(const HaloArguments<T>& arguments, const Addresses& next, int lane) {
      for (int i = 0; i < classes; ++i) {
        const std::int64_t own = record_offset(next.own(i).block_of(lane), record);
        add(arguments.b + own);
        add(arguments.y + own);
        if (arguments.x != nullptr) add(arguments.x + own);
      }
    }
    /// One of `shares` equal shares of them.
    template <int shares>
    [[gnu::always_inline]] void fetch() {
      constexpr int share = (3 * classes * lines + shares - 1) / shares;
      for (int left = share; left > 0 && stream_ < count_;) {
        const int many = std::min(left, lines - line_);
        const T* const from = streams_[stream_] + line_ * line;
        for (int i = 0; i < many; ++i) __builtin_prefetch(from + i * line, 0, 2);
        left -= many;
        line_ += many;
        if (line_ < lines) continue;
        line_ = 0;
        ++stream_;
      }
    }

   private:
    static constexpr int line = 64 / static_cast<int>(sizeof(T));  // of a cache
    static constexpr int lines = record * interleave / line;
    void add(const T* records) { streams_[count_++] = records; }
    const T* streams_[3 * classes];
    int count_ = 0;
    int stream_ = 0;
    int line_ = 0;
  };
  [[gnu::always_inline]] void fetch_ahead() { ahead_.template fetch<(2 * dim + 1) * classes * V::parts>(); }

  explicit HaloSmoother(const HaloArguments<T>& arguments)
      : arguments_(arguments),
        work_(*static_cast<Work*>(arguments.workspace)),
        whole_(arguments, work_.fields, work_.whole),
        waiting_(reinterpret_cast<Waiting*>(static_cast<std::byte*>(arguments.workspace) + sizeof(Work))) {
    const CellData<T>& cell = *arguments.cell;
    for (int t = 0; t < dim; ++t) {
      for (int j = 0; j < n; ++j) {
        for (int i = 0; i < n; ++i) {
          const T reaction = i == j ? cell.alpha / T(dim - 1) : T(0);
          const T own = ((i + j) % 2 == 0 ? cell.own[t][j][i] : T(0)) + reaction;
          tangential_[t][0][j][i] = own + T(odd_sign(j)) * cell.below[t][j][i];
          tangential_[t][1][j][i] = own - T(odd_sign(j)) * cell.below[t][j][i];
        }
      }
    }
    for (int i = 0; i <= n; ++i) {
      for (int j = 0; j <= n; ++j) {
        // Both cells see the middle hat, and its sum is taken once.
        mass_[i][j] = (j == middle ? T(2) : T(1)) * cell.mass[function_of(i)][function_of(j)];
      }
    }
  }

  /// A register of patches: those of a problem that most of them have are solved, others wait for more of their kind.
  void smooth(const PatchLanes& batch, const Addresses& addresses, int lane) {
    LaneSet left = batch.active & ((1U << V::lanes) - 1) << lane;
    if (left == 0) return;
    lane_ = lane;
    addresses_ = &addresses;
    find_extra(batch);
    find_hats(batch);
    gather_pressure();
    for (int c = 0; c < dim; ++c) gather(c, left);
    LaneSet most = 0;
    int problem_of_most = 0;
    while (left != 0) {
      const int problem = arguments_.kinds[batch.kind[std::countr_zero(left)]].problem;
      const LaneSet same = left & lanes_where([&](int l) {
                             return (left >> l & 1) != 0 && arguments_.kinds[batch.kind[l]].problem == problem;
                           });
      left &= ~same;
      if (arguments_.splits[problem] != 0 && 8 * std::popcount(same) >= 5 * V::lanes) {
        most = same;
        problem_of_most = problem;
        continue;
      }
      waiting_[problem].add(same >> lane, batch.lower + lane, work_.fields);
    }
    if (most != 0) {
      solve(problem_of_most);
      Places own[classes];
      for (int bits = 0; bits < classes; ++bits) own[bits] = addresses.own(bits);
      write(own, most);
    }
    for (int problem = 0; problem < arguments_.problem_count; ++problem) {
      if (waiting_[problem].count() >= (arguments_.splits[problem] != 0 ? V::lanes : width)) solve_waiting(problem);
    }
  }

  /// Solves for the last of those that wait, as many as are solved for at a time.
  void solve_waiting(int problem) {
    Waiting& waiting = waiting_[problem];
    if (arguments_.splits[problem] == 0) return whole_.solve(problem, waiting);
    const int many = waiting.take(V::lanes);
    waiting.fields(0, work_.fields);
    std::int32_t lower[width];
    waiting.lower_cells(many, width, arguments_.topology.null, lower);
    std::int32_t cells[classes][width];
    find_patch_cells<dim>(arguments_.topology, lower, cells);
    Places own[classes];
    for (int bits = 0; bits < classes; ++bits) {
      work_.waiting[bits] = find_places(cells[bits], arguments_.topology.null, 0);
      own[bits] = Places(work_.waiting[bits], 0);
    }
    lane_ = 0;
    solve(problem);
    write(own, (1U << many) - 1);
  }

  // --- reading -------------------------------------------------------------------------------------------------------

  template <int count>
  [[gnu::always_inline]] static Reader reader(const Places& places, const T* vector, int first,
                                              typename Work::Lines& lines) {
    return places.template reader<count>(vector, first, lines.values);
  }
  /// visit(std::true_type) if one of the places may be a pair, otherwise visit(std::false_type).
  template <class F>
  [[gnu::always_inline]] static void with_pairs(bool pairs, F&& visit) {
    if (Places::permutes && pairs) {
      visit(std::true_type());
    } else {
      visit(std::false_type());
    }
  }

  /// b, and the old pressure.
  void gather_pressure() {
    Reader from[classes];
    for (int i = 0; i < classes; ++i) {
      from[i] = reader<block>(addresses_->own(i), arguments_.b, dim * block, work_.cells[i]);
    }
    with_pairs(addresses_->pairs(), [&](auto pairs) { gather_pressure<pairs>(from, work_.fields.pressure); });
    if (arguments_.x == nullptr) return;
    for (int i = 0; i < classes; ++i) {
      from[i] = reader<block>(addresses_->own(i), arguments_.x, dim * block, work_.cells[i]);
    }
    with_pairs(addresses_->pairs(), [&](auto pairs) { gather_pressure<pairs>(from, work_.fields.old_pressure); });
  }
  template <bool pairs>
  void gather_pressure(const Reader (&from)[classes], R (&to)[classes][block]) {
    for (int value = 0; value < block; ++value) {
      R v[classes];
#pragma GCC unroll 8
      for (int i = 0; i < classes; ++i) v[i] = from[i].template get<pairs>(value, lane_);
      butterfly<dim>(v);
      const int flip = flip_of_pressure<n>(value);
#pragma GCC unroll 8
      for (int i = 0; i < classes; ++i) to[i ^ flip][value] = v[i];
    }
  }

  /// The right-hand side of component c, and its share of the pressure's. Hats on the ends stay as they are where they
  /// are no unknowns of the patches `lanes`.
  void gather(int c, LaneSet lanes) {
    const bool around = arguments_.x != nullptr;
    if (around) {
      gather_around(c);
      gather_ends(c);
    }
    Reader from[classes];
    for (int i = 0; i < classes; ++i) {
      from[i] = reader<block>(addresses_->own(to_directions<dim>(i, c)), arguments_.b, c * block, work_.cells[i]);
    }
    with_pairs(addresses_->pairs(), [&](auto pairs) { gather_velocity<pairs>(c, from); });
    if (any_hat_[c]) gather_hats(c);
    copy_ends(c, lanes);
  }

  /// A value of a row in class q, less what lies around; odd rows do not meet the middle hat.
  template <int row>
  [[gnu::always_inline]] R less_around(const R& value, int q, bool odd, int column) const {
    R sum = value;
#pragma GCC unroll 16
    for (int j = 0; j <= n; ++j) {
      if (mass_couples(n, function_of(row), function_of(j)) && !(odd && j == middle)) {
        sum -= mass_[row][j] * work_.rows[q][j * columns + column];
      }
    }
    return sum;
  }
  /// The row of B^T p_old in class q that belongs to mode i of the pressure.
  [[gnu::always_inline]] R old_gradient(int c, int q, int i, int column) const {
    return arguments_.cell->inverse_h[c] *
           work_.fields.old_pressure[to_directions<dim>(q ^ 1, c)][line_start[c][column] + i * line_stride[c]];
  }
  template <bool pairs>
  void gather_velocity(int c, const Reader (&from)[classes]) {
    gather_middle<pairs>(c, from);
    gather_bubbles<pairs, 0>(c, from);
  }
  template <bool pairs>
  [[gnu::always_inline]] void gather_middle(int c, const Reader (&from)[classes]) {
    const bool around = arguments_.x != nullptr;
    const T stiffness = arguments_.cell->viscosity * arguments_.cell->inverse_h[c] * arguments_.cell->inverse_h[c];
    for (int column = 0; column < columns; ++column) {
      const int flip = flip_of_column<n>(column);
      R v[classes];
#pragma GCC unroll 8
      for (int i = 1; i < classes; i += 2) v[i] = from[i].template get<pairs>(column, lane_);
      butterfly<dim, true>(v);
#pragma GCC unroll 8
      for (int i = 1; i < classes; i += 2) {
        const int q = (i ^ flip) - 1;
        if (around) {
          v[i] = less_around<middle>(v[i], q, false, column) + stiffness * work_.ends[q][column] +
                 old_gradient(c, q, 0, column);
        }
        work_.fields.velocity[c][q][middle * columns + column] = v[i];
      }
    }
  }
  template <bool pairs, int row>
  [[gnu::always_inline]] void gather_bubbles(int c, const Reader (&from)[classes]) {
    if constexpr (row < order) {
      const bool around = arguments_.x != nullptr;
      for (int column = 0; column < columns; ++column) {
        const int flip = flip_of_column<n>(column) | row % 2;  // bubbles 1, 3, ... are even about their cells
        R v[classes];
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) v[i] = from[i].template get<pairs>((row + 1) * columns + column, lane_);
        butterfly<dim>(v);
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) {
          const int q = i ^ flip;
          if (around)
            v[i] = less_around<row>(v[i], q, (i ^ row) % 2 != 0, column) + old_gradient(c, q, row + 1, column);
          work_.fields.velocity[c][q][row * columns + column] = v[i];
        }
      }
      gather_bubbles<pairs, row + 1>(c, from);
    }
  }

  /// Of a vector: hats on the ends in direction c, of the lower cells' records and of those beyond the upper cells.
  /// Zero where they are unknowns (`known`), or only there.
  template <bool known>
  void read_ends(int c, const T* vector, R (&to)[classes][columns]) {
    Reader from[classes];
    bool any_pair = false;
    for (int i = 0; i < classes; ++i) {
      const int bits = to_directions<dim>(i, c);
      const Places places = i % 2 == 0 ? addresses_->own(bits) : addresses_->beyond(c, bits);
      from[i] = reader<columns>(places, vector, c * block, work_.cells[i]);
      any_pair |= places.pair();
    }
    with_pairs(any_pair, [&](auto pairs) {
      for (int column = 0; column < columns; ++column) {
        R v[classes];
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) v[i] = from[i].template get<pairs>(column, lane_);
        if (any_hat_[c]) {
          for (int i = 0; i < classes; ++i) v[i] *= known ? T(1) - hat_[c][i % 2] : hat_[c][i % 2];
        }
        butterfly<dim>(v);
        const int flip = flip_of_column<n>(column);
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) to[i ^ flip][column] = v[i];
      }
    });
  }

  /// The right-hand side of hats on the ends in direction c that are unknowns.
  void gather_hats(int c) {
    read_ends<false>(c, arguments_.b, work_.fields.hats[c]);
    if (arguments_.x == nullptr) return;
    for (int q = 0; q < classes; ++q) {
      for (int column = 0; column < columns; ++column) {
        R& value = work_.fields.hats[c][q][column];
        value = less_around<end>(value, q, q % 2 != 0, column) - old_gradient(c, q, 0, column);
      }
    }
  }

  /// What known hats on the ends in direction c give to the rows, before the mass matrix, and to the divergence.
  void gather_ends(int c) {
    read_ends<true>(c, arguments_.x, work_.ends);
    const T factor = arguments_.cell->inverse_h[c];
    for (int q = 0; q < classes; ++q) {
      R* const row = work_.rows[q] + end * columns;
      multiply_columns<1, true>(&tangential_[a_of(c)][q >> 1 & 1][0][0], n, work_.ends[q], row);
      if constexpr (dim == 3) {
        multiply_columns<n, true>(&tangential_[b_of(c)][q >> 2 & 1][0][0], n, work_.ends[q], row);
      }
      R* const g = work_.fields.pressure[to_directions<dim>(q ^ 1, c)];
      for (int column = 0; column < columns; ++column) g[line_start[c][column]] -= factor * work_.ends[q][column];
    }
  }

  /// y = x, or zero, on the hats on the lower ends.
  void copy_ends(int c, LaneSet lanes) {
    for (int i = 0; i < classes; i += 2) {
      const Places places = addresses_->own(to_directions<dim>(i, c));
      const Writer to = writer(places, c * block, work_.cells[i], lanes);
      if (arguments_.x == nullptr) {
        for (int column = 0; column < columns; ++column) to.put(column, lane_, R{});
      } else {
        const Reader old = reader<columns>(places, arguments_.x, c * block, work_.hats[i]);
        with_pairs(places.pair(), [&](auto pairs) {
          for (int column = 0; column < columns; ++column) {
            to.put(column, lane_, old.template get<pairs>(column, lane_));
          }
        });
      }
      places.template finish<0, columns>(to, arguments_.y, c * block, lanes);
    }
  }

  /// For each end of each direction, the patch's own modes there count as often as those of a cell that is its mirror
  /// image: as the local matrix has more weight than the mesh, and, hats on the ends being no unknowns of the patch, as
  /// the mesh has less than an interior face.
  void find_extra(const PatchLanes& batch) {
    for (int t = 0; t < dim; ++t) {
      any_extra_[t] = (batch.extra >> t & 1) != 0;
      if (!any_extra_[t]) continue;
      for (int e = 0; e < 2; ++e) {
        alignas(SOLENOID_SIMD_BYTES) T of_unknowns[V::lanes]{};
        alignas(SOLENOID_SIMD_BYTES) T of_ends[V::lanes]{};
        for (int l = 0; l < V::lanes; ++l) {
          if ((batch.active >> (lane_ + l) & 1) == 0) continue;
          const HaloKind& kind = arguments_.kinds[batch.kind[lane_ + l]];
          of_unknowns[l] = static_cast<T>(kind.weight[t][e] - kind.face[t][e]);
          of_ends[l] = static_cast<T>(1 - kind.face[t][e]);
        }
        extra_[t][e][0] = *reinterpret_cast<const typename V::Unaligned*>(of_unknowns);
        extra_[t][e][1] = *reinterpret_cast<const typename V::Unaligned*>(of_ends);
      }
    }
  }

  /// Where hats on the ends in direction c are unknowns: 1, elsewhere 0.
  void find_hats(const PatchLanes& batch) {
    for (int c = 0; c < dim; ++c) {
      any_hat_[c] = (batch.hats >> c & 1) != 0;
      if (!any_hat_[c]) continue;
      for (int e = 0; e < 2; ++e) {
        alignas(SOLENOID_SIMD_BYTES) T of_lanes[V::lanes]{};
        for (int l = 0; l < V::lanes; ++l) {
          if ((batch.active >> (lane_ + l) & 1) == 0) continue;
          of_lanes[l] = arguments_.kinds[batch.kind[lane_ + l]].hat[c][e] ? T(1) : T(0);
        }
        hat_[c][e] = *reinterpret_cast<const typename V::Unaligned*>(of_lanes);
      }
    }
  }

  /// extra_ on the end of bit `1 + tau` of cell i, for the row of component c that is the hat on the end of bit 0.
  [[gnu::always_inline]] R extra_of_hat(int c, int t, int tau, int i) const {
    const R(&extra)[2] = extra_[t][i >> (1 + tau) & 1];
    return any_hat_[c] ? extra[1] + hat_[c][i % 2] * (extra[0] - extra[1]) : extra[1];
  }

  /// Where the rows of component c lie around the patch in tangential direction a (tau = 0) or b.
  struct Around {
    Reader cell[classes];
    Reader hats[classes];      // upper hats, of upper cells
    Reader own[classes];       // the patch's own cells, where some count
    Reader own_hats[classes];  // and their hats on the end
    bool any_pair;
  };
  void look_around(int c, int tau, Around& around) {
    const int t = (c + 1 + tau) % dim;
    around.any_pair = any_extra_[t] && addresses_->pairs();
    for (int i = 0; i < classes; ++i) {
      const int bits = to_directions<dim>(i, c);
      const auto find = [&](Reader& reader, const Places& places, auto count, typename Work::Lines& lines) {
        reader = HaloSmoother::reader<count>(places, arguments_.x, c * block, lines);
        around.any_pair |= places.pair();
      };
      const std::integral_constant<int, block> all;
      const std::integral_constant<int, columns> hats;
      find(around.cell[i], addresses_->beyond(t, bits), all, work_.cells[i]);
      if (i % 2 == 1) find(around.hats[i], addresses_->above(c, tau, bits), hats, work_.hats[i]);
      if (!any_extra_[t]) continue;
      find(around.own[i], addresses_->own(bits), all, work_.own[i]);
      if (i % 2 == 1) find(around.own_hats[i], addresses_->beyond(c, bits), hats, work_.own_hats[i]);
    }
  }

  /// work.rows: what lies around in tangential directions gives to component c.
  void gather_around(int c) {
    Around around;
    look_around(c, 0, around);
    with_pairs(around.any_pair, [&](auto pairs) { gather_rows<0, pairs>(a_of(c), around); });
    if constexpr (dim == 3) {
      look_around(c, 1, around);
      with_pairs(around.any_pair, [&](auto pairs) { gather_rows<1, pairs>(b_of(c), around); });
    }
  }
  /// In direction t, the first or second after that of the component.
  template <int tau, bool pairs>
  void gather_rows(int t, const Around& around) {
    constexpr int stride = tau == 0 ? 1 : n;
    const int c = (t - 1 - tau + dim) % dim;
    const T* const below = &arguments_.cell->below[t][0][0];
    for (int row = 0; row <= n; ++row) {
      for (int line = 0; line < others; ++line) {
        const int start = tau == 0 ? line * n : line;
        R v[n][classes];
        if (row == middle) {
#pragma GCC unroll 16
          for (int mode = 0; mode < n; ++mode) {
            const int column = start + mode * stride;
#pragma GCC unroll 8
            for (int i = 1; i < classes; i += 2) v[mode][i] = around.cell[i].template get<pairs>(column, lane_);
            if (any_extra_[t]) {
              for (int i = 1; i < classes; i += 2) {
                v[mode][i] += T(odd_sign(mode)) * extra_[t][i >> (1 + tau) & 1][0] *
                              around.own[i].template get<pairs>(column, lane_);
              }
            }
            butterfly<dim, true>(v[mode]);
          }
          const int flip = flip_of_column<n>(start);
#pragma GCC unroll 4
          for (int i = 1; i < classes; i += 2) {
            multiply_line<stride, tau == 1>(below, v, i, 2 << tau, work_.rows[(i ^ flip) - 1] + row * columns + start);
          }
          continue;
        }
        const Reader* const upper = row == end ? around.hats : around.cell;
        const Reader* const own_upper = row == end ? around.own_hats : around.own;
#pragma GCC unroll 16
        for (int mode = 0; mode < n; ++mode) {
          const int value = (row == end ? 0 : (row + 1) * columns) + start + mode * stride;
#pragma GCC unroll 8
          for (int i = 0; i < classes; ++i) {
            v[mode][i] = (i % 2 == 0 ? around.cell : upper)[i].template get<pairs>(value, lane_);
          }
          if (any_extra_[t]) {
            for (int i = 0; i < classes; ++i) {
              const R extra = row == end ? extra_of_hat(c, t, tau, i) : extra_[t][i >> (1 + tau) & 1][0];
              v[mode][i] += T(odd_sign(mode)) * extra *
                            (i % 2 == 0 ? around.own : own_upper)[i].template get<pairs>(value, lane_);
            }
          }
          butterfly<dim>(v[mode]);
        }
        const int flip = flip_of_column<n>(start) | (row < order ? row % 2 : 0);
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) {
          multiply_line<stride, tau == 1>(below, v, i, 2 << tau, work_.rows[i ^ flip] + row * columns + start);
        }
      }
    }
  }
  /// y = m x, or y += m x, along a line; its even modes lie in place q of v, the odd ones in that with bit `odd`
  /// changed.
  template <int stride, bool add>
  [[gnu::always_inline]] static void multiply_line(const T* m, const R (&v)[n][classes], int q, int odd, R* y) {
#pragma GCC unroll 16
    for (int j = 0; j < n; ++j) {
      R sum = add ? y[j * stride] : R{};
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) sum += m[j * max_n + i] * v[i][i % 2 == 0 ? q : q ^ odd];
      y[j * stride] = sum;
    }
  }

  // --- small dense blocks --------------------------------------------------------------------------------------------

  /// y = m x or y += m x along the direction with the given stride of n^(dim-1) columns; rows of m begin at multiples
  /// of `pitch`.
  template <int stride, bool add>
  [[gnu::always_inline]] static void multiply_columns(const T* m, int pitch, const R* x, R* y) {
    for (int line = 0; line < others; ++line) {
      const int start = stride == 1 ? line * n : line;
      R in[n];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) in[i] = x[start + i * stride];
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) {
        R sum = add ? y[start + j * stride] : R{};
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) sum += m[j * pitch + i] * in[i];
        y[start + j * stride] = sum;
      }
    }
  }
  /// x <- m^T x, or m x, along lines of n numbers.
  template <int stride, bool transposed>
  [[gnu::always_inline]] static void transform_line(const T* m, R* x) {
    R in[n];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) in[i] = x[i * stride];
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) {
      R sum{};
#pragma GCC unroll 16
      for (int j = 0; j < n; ++j) sum += (transposed ? m[j * n + i] : m[i * n + j]) * in[j];
      x[i * stride] = sum;
    }
  }
  /// Lines in one direction, or in two: n^directions numbers, all in registers between the two.
  template <int directions, bool transposed>
  [[gnu::always_inline]] static void transform_plane(const T* fast, const T* slow, R* x) {
    constexpr int lines = power(n, directions - 1);
    R plane[n * lines];
#pragma GCC unroll 36
    for (int i = 0; i < n * lines; ++i) plane[i] = x[i];
#pragma GCC unroll 8
    for (int line = 0; line < lines; ++line) transform_line<1, transposed>(fast, plane + line * n);
    if constexpr (directions == 2) {
#pragma GCC unroll 8
      for (int line = 0; line < n; ++line) transform_line<n, transposed>(slow, plane + line);
    }
#pragma GCC unroll 36
    for (int i = 0; i < n * lines; ++i) x[i] = plane[i];
  }
  /// Parity `odd` of S_O.
  [[nodiscard]] const T* eigen_o(int t, int odd) const { return patch_->eigen_o[t] + odd * n * n; }

  // --- local solve ---------------------------------------------------------------------------------------------------

  /// fields: right-hand side -> new values.
  void solve(int problem) {
    patch_ = arguments_.problems + problem;
    for (int c = 0; c < dim; ++c) forward(c);
    for (int q = 0; q < classes; ++q) {
      fetch_ahead();
      solve_pressure(q);
    }
    for (int c = 0; c < dim; ++c) backward(c);
  }

  /// schur = -B A^-1 f; the velocity becomes A^-1 f in the eigenbasis.
  void forward(int c) {
    for (int q = 0; q < classes; ++q) {
      fetch_ahead();
      if (q % 2 == 0) {
        forward_class<n>(c, q);
      } else {
        forward_class<order>(c, q);
      }
    }
  }
  template <int rows>
  void forward_class(int c, int q) {
    R* const f = work_.fields.velocity[c][q];
    const T* const fast = eigen_o(a_of(c), q >> 1 & 1);
    const T* const slow = eigen_o(b_of(c), q >> 2 & 1);
    for (int row = 0; row < rows; ++row) transform_plane<dim - 1, true>(fast, slow, f + row * columns);
    const T* const s = patch_->eigen_p[c] + (rows == n ? 0 : n * n);
    const T* const d = patch_->divergence[c] + (rows == n ? 0 : n * n);
    const T* const inverse_lambda = patch_->inverse_lambda[c] + lambda_start(q);
    R* const to = work_.schur[to_directions<dim>(q ^ 1, c)];
    for (int column = 0; column < columns; ++column) {
      R in[n];
      R u[n];
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) in[i] = f[i * columns + column];
      const T* const lambda = inverse_lambda + column % n + modes * (column / n);
#pragma GCC unroll 16
      for (int e = 0; e < rows; ++e) {
        R sum{};
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) sum += s[i * rows + e] * in[i];
        u[e] = lambda[e * power(modes, dim - 1)] * sum;
        f[e * columns + column] = u[e];
      }
      R* const line = to + line_start[c][column];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) {
        R sum = c == 0 ? R{} : line[i * line_stride[c]];
#pragma GCC unroll 16
        for (int e = 0; e < rows; ++e) sum -= d[i * rows + e] * u[e];
        line[i * line_stride[c]] = sum;
      }
    }
  }
  /// Of a class in the table of 1 / lambda.
  static constexpr int lambda_start(int q) {
    return n * ((q >> 1 & 1) + modes * (q >> 2 & 1) + power(modes, dim - 1) * (q & 1));
  }
  /// Lines of the pressure of a class along c: where that of a column of component c starts, and its stride.
  static constexpr auto line_start = [] {
    std::array<std::array<std::int16_t, columns>, dim> start{};
    for (int c = 0; c < dim; ++c) {
      for (int column = 0; column < columns; ++column) {
        const int at = column % n * power(n, a_of(c)) + (dim == 3 ? column / n * power(n, b_of(c)) : 0);
        start[c][column] = static_cast<std::int16_t>(at);
      }
    }
    return start;
  }();
  static constexpr std::array<int, 3> line_stride{1, n, n* n};

  void backward(int c) {
    for (int q = 0; q < classes; ++q) {
      fetch_ahead();
      if (q % 2 == 0) {
        backward_class<n>(c, q);
      } else {
        backward_class<order>(c, q);
      }
    }
  }

  /// u = f + A^-1 C^T p, back to modes.
  template <int rows>
  void backward_class(int c, int q) {
    R* const f = work_.fields.velocity[c][q];
    const T* const s = patch_->eigen_p[c] + (rows == n ? 0 : n * n);
    const T* const d = patch_->divergence[c] + (rows == n ? 0 : n * n);
    const T* const inverse_lambda = patch_->inverse_lambda[c] + lambda_start(q);
    const R* const from = work_.schur[to_directions<dim>(q ^ 1, c)];
    for (int column = 0; column < columns; ++column) {
      R p[n];
      R u[n];
      const R* const line = from + line_start[c][column];
#pragma GCC unroll 16
      for (int i = 0; i < n; ++i) p[i] = line[i * line_stride[c]];
      const T* const lambda = inverse_lambda + column % n + modes * (column / n);
#pragma GCC unroll 16
      for (int e = 0; e < rows; ++e) {
        R sum{};
#pragma GCC unroll 16
        for (int i = 0; i < n; ++i) sum += d[i * rows + e] * p[i];
        u[e] = f[e * columns + column] + lambda[e * power(modes, dim - 1)] * sum;
      }
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        R sum{};
#pragma GCC unroll 16
        for (int e = 0; e < rows; ++e) sum += s[i * rows + e] * u[e];
        f[i * columns + column] = sum;
      }
    }
    const T* const fast = eigen_o(a_of(c), q >> 1 & 1);
    const T* const slow = eigen_o(b_of(c), q >> 2 & 1);
    for (int row = 0; row < rows; ++row) transform_plane<dim - 1, false>(fast, slow, f + row * columns);
  }

  // --- pressure ------------------------------------------------------------------------------------------------------

  template <bool transposed>
  void transform_pressure(int q, R* p) {
    const T* const along_x = eigen_o(0, q & 1);
    const T* const along_y = eigen_o(1, q >> 1 & 1);
    for (int plane = 0; plane < others; ++plane) transform_plane<2, transposed>(along_x, along_y, p + plane * n * n);
    if constexpr (dim == 3) {
      const T* const along_z = eigen_o(2, q >> 2 & 1);
      for (int line = 0; line < n * n; ++line) transform_line<n * n, transposed>(along_z, p + line);
    }
  }

  /// S p = -(g + B A^-1 f): schur has p in the eigenbasis, pressure has it in modes.
  void solve_pressure(int q) {
    R* const p = work_.fields.pressure[q];
    R* const schur = work_.schur[q];
    transform_pressure<true>(q, p);
    for (int i = 0; i < block; ++i) p[i] = schur[i] - p[i];
    multiply_block<block>(patch_->block_inverse[q], p, schur);
    for (int i = 0; i < block; ++i) p[i] = schur[i];
    transform_pressure<false>(q, p);
    if (arguments_.x == nullptr) return;
    for (int i = 0; i < block; ++i) p[i] += T(1) / T(classes) * work_.fields.old_pressure[q][i];
  }

  /// y = m x, m symmetric; several rows at a time share each load of x.
  template <int size>
  static void multiply_block(const T* m, const R* x, R* y) {
    constexpr int rows = std::min(size, 9);
    for (int i = 0; i + rows <= size; i += rows) multiply_rows<rows>(size, m + i, x, y + i);
    constexpr int left = size % rows;
    if constexpr (left > 0) multiply_rows<left>(size, m + size - left, x, y + size - left);
  }

  // --- writing -------------------------------------------------------------------------------------------------------

  [[gnu::always_inline]] Writer writer(const Places& places, int first, typename Work::Lines& lines,
                                       LaneSet lanes) const {
    return places.writer(arguments_.y, first, lines.values, lanes, lane_);
  }

  /// y = fields for the patches `lanes`, but for hats on the ends.
  void write(const Places (&own)[classes], LaneSet lanes) {
    for (int c = 0; c < dim; ++c) write_velocity(c, own, lanes);
    write_pressure(own, lanes);
  }

  void write_velocity(int c, const Places (&own)[classes], LaneSet lanes) {
    Writer to[classes];
    for (int i = 0; i < classes; ++i) {
      to[i] = writer(own[to_directions<dim>(i, c)], c * block, work_.cells[i], lanes);
    }
    const auto& velocity = work_.fields.velocity[c];
    for (int column = 0; column < columns; ++column) {
      const int flip = flip_of_column<n>(column);
      R v[classes];
#pragma GCC unroll 8
      for (int i = 1; i < classes; i += 2) v[i] = velocity[(i ^ flip) - 1][middle * columns + column];
      butterfly<dim, true>(v);
#pragma GCC unroll 8
      for (int i = 1; i < classes; i += 2) to[i].put(column, lane_, v[i]);
      for (int row = 0; row < order; ++row) {
        const int f = flip | row % 2;
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) v[i] = velocity[i ^ f][row * columns + column];
        butterfly<dim>(v);
#pragma GCC unroll 8
        for (int i = 0; i < classes; ++i) to[i].put((row + 1) * columns + column, lane_, v[i]);
      }
    }
    for (int i = 0; i < classes; ++i) {
      const Places& places = own[to_directions<dim>(i, c)];
      if (i % 2 == 0) {
        places.template finish<columns, block>(to[i], arguments_.y, c * block, lanes);
      } else {
        places.template finish<0, block>(to[i], arguments_.y, c * block, lanes);
      }
    }
  }

  void write_pressure(const Places (&own)[classes], LaneSet lanes) {
    Writer to[classes];
    for (int i = 0; i < classes; ++i) to[i] = writer(own[i], dim * block, work_.cells[i], lanes);
    for (int value = 0; value < block; ++value) {
      const int flip = flip_of_pressure<n>(value);
      R v[classes];
#pragma GCC unroll 8
      for (int i = 0; i < classes; ++i) v[i] = work_.fields.pressure[i ^ flip][value];
      butterfly<dim>(v);
#pragma GCC unroll 8
      for (int i = 0; i < classes; ++i) to[i].put(value, lane_, v[i]);
    }
    for (int i = 0; i < classes; ++i) {
      own[i].template finish<0, block>(to[i], arguments_.y, dim * block, lanes);
    }
  }

  const HaloArguments<T>& arguments_;
  Work& work_;
  WholePatches<T, dim, order> whole_;
  Waiting* const waiting_;      // [problem]
  T tangential_[dim][2][n][n];  // nu L^O between interior faces and half of alpha (all of it in 2D), by parity
  T mass_[n + 1][n + 1];        // in the order of rows
  Ahead ahead_;
  // Of the register of patches that is worked on:
  const PatchData<T>* patch_ = nullptr;
  const Addresses* addresses_ = nullptr;
  int lane_ = 0;  // the first
  bool any_extra_[dim];
  R extra_[dim][2][2];  // [direction][end][hats on the ends that are no unknowns]
  bool any_hat_[dim];
  R hat_[dim][2];
};

}  // namespace solenoid::cpu::SOLENOID_SIMD_NAMESPACE
