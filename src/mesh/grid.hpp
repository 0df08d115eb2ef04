#pragma once
/// \file
/// The cells of one level: where they are, how they are numbered, what lies behind each face.

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/unset.hpp"
#include "mesh/coarsening.hpp"
#include "mesh/face.hpp"
#include "mesh/layout.hpp"
#include "mesh/metric.hpp"
#include "mesh/partition.hpp"
#include "mesh/record.hpp"
#include "solenoid/communicator.hpp"
#include "solenoid/problem.hpp"

namespace solenoid {

/// Cells on a box lattice, some missing. Records (of unknowns) are numbered as in mesh/layout.hpp: cells row by row, in
/// a row those at even places before those at odd ones, so that the cells of neighbouring vertex patches of a colour
/// have consecutive numbers; then hat-only records, where the normal unknowns of upper boundary faces are stored. Rows
/// run along x, or along another direction if slip or outflow sides end those along x, or cuts between ranks: patches
/// at such a side need a kernel of their own, those at a cut are smoothed by both ranks, and should not be one of each
/// row.
///
/// With a partition a grid has the cells of this rank and copies of those around them (Partition::layers): owned cells
/// are numbered first, then ghosts that touch them, then the others; each as above. Positions are those in the whole
/// lattice. What lies behind the outermost ghosts is not known: the null record. Making such a grid is collective.
class Grid {
 public:
  /// The finest grid of a mesh. `boundary_hats`: store the normal unknowns of every upper boundary face,
  /// not just of those on outflow sides (for lifting boundary data and for evaluating solutions).
  Grid(const Mesh& mesh, const Boundary& boundary, bool boundary_hats = false,
       std::shared_ptr<const Partition> partition = nullptr);

  /// The coarsening by pairs in the given directions, if the lattice pairs up: even counts, the cells that become one
  /// all there or all not, and boundary faces that become one of one kind.
  [[nodiscard]] std::optional<Coarsening> pairing(const std::array<bool, 3>& directions) const;
  /// The grid whose cells are those that become one, distributed as this one is.
  [[nodiscard]] Grid coarsen(const Coarsening& coarsening) const { return coarsen(coarsening, partition_); }
  /// The same, with all its cells on every rank.
  [[nodiscard]] Grid coarsen_whole(const Coarsening& coarsening) const { return coarsen(coarsening, nullptr); }
  /// This grid with all its cells.
  [[nodiscard]] Grid whole() const;
  /// This grid, with the normal unknowns of upper boundary faces, but for those on holes whose condition is among
  /// `resting` (by number, or empty: none). Cells have the same numbers.
  [[nodiscard]] Grid with_boundary_hats(std::vector<bool> resting = {}) const;
  /// So many of this grid, behind each other in the last direction and not connected, for operators that work on many
  /// vectors at once (parts are not told apart). They are numbered one after the other, the cells of all before the
  /// hat-only records of all.
  [[nodiscard]] Grid copies(int count) const;

  [[nodiscard]] int dim() const { return dim_; }
  [[nodiscard]] const std::array<int, 3>& extent() const { return extent_; }  ///< lattice cells per direction
  /// Which rank has which cells; nullptr if all are here.
  [[nodiscard]] const std::shared_ptr<const Partition>& partition() const { return partition_; }
  /// Of the ranks that have a part of the cells each; nullptr if all are here.
  [[nodiscard]] const Communicator* communicator() const {
    return partition_ == nullptr ? nullptr : &partition_->communicator();
  }
  /// Layers of cells of other ranks around owned ones, where ranks share the cells.
  [[nodiscard]] int ghost_layers() const {
    return metric_.map() == nullptr ? Partition::layers : Partition::sheared_layers;
  }
  /// The part of the lattice with the owned cells.
  [[nodiscard]] LatticeBox owned_box() const;
  /// Cells of all ranks.
  [[nodiscard]] std::int64_t cell_count() const { return cell_count_; }
  /// Directions in which cells follow each other in a row, rows in a plane, and planes: how cells are numbered.
  [[nodiscard]] const std::array<int, 3>& numbering() const { return numbering_; }
  [[nodiscard]] const Metric& metric() const { return metric_; }
  [[nodiscard]] const std::array<bool, 3>& periodic() const { return periodic_; }

  [[nodiscard]] const VectorLayout& layout() const { return layout_; }

  /// Numbers that each rank has of its owned cells, added up over the ranks: the same everywhere.
  template <class Number>
  void add_up(std::span<Number> numbers) const {
    if (partition_ != nullptr) partition_->communicator().sum(numbers);
  }

  /// Lattice coordinates of a cell.
  [[nodiscard]] const std::array<std::int32_t, 3>& position(Record cell) const { return cells_->position[cell]; }
  /// Those of all cells.
  [[nodiscard]] std::span<const std::array<std::int32_t, 3>> positions() const { return cells_->position; }
  /// The cell at lattice coordinates (wrapped in periodic directions), or -1 where there is none or it is not here.
  [[nodiscard]] Record at(std::array<int, 3> position) const;
  /// Record behind face `side` (2a lower, 2a + 1 upper side of direction a): a cell, a hat-only record or the null
  /// record. Defined for every record up to the null record: hat-only records know the cell below, those after them
  /// only the null record.
  [[nodiscard]] Record neighbour(Record record, int side) const { return connections_->neighbour[side][record]; }
  /// Of all records behind face `side`, indexed by record.
  [[nodiscard]] const Record* neighbours(int side) const { return connections_->neighbour[side].data(); }
  /// The condition (hole_side in problem/regions.hpp) on a face of a cell behind which there is a hole; -1 for faces on
  /// sides of the bounding box.
  [[nodiscard]] int hole(Record cell, int side) const;
  /// What a face of a cell means; interior for all other records.
  [[nodiscard]] Face face(Record cell, int side) const { return connections_->face[side][cell]; }
  [[nodiscard]] const Face* faces(int side) const { return connections_->face[side].data(); }
  /// For a hat-only record: the direction of its normal unknown. The cell below it is its neighbour on that lower side.
  [[nodiscard]] int hat_direction(Record record) const { return hat_direction_[record - layout_.hats().first()]; }
  /// Those of all hat-only records.
  [[nodiscard]] std::span<const std::uint8_t> hat_directions() const { return hat_direction_; }
  /// For a hat-only record: the kind of its face.
  [[nodiscard]] Face hat_face(Record record) const;
  /// True if the grid stores the normal unknowns of upper boundary faces, not just of those on outflow sides.
  [[nodiscard]] bool boundary_hats() const { return boundary_hats_; }
  /// Lower corner of a cell; how wide it is.
  [[nodiscard]] Point corner(Record cell) const;
  [[nodiscard]] Point widths(Record cell) const;
  /// Faces of this kind on side `side` of cells, of all ranks.
  [[nodiscard]] std::int64_t count_faces(int side, Face kind) const {
    return face_count_[side][static_cast<std::size_t>(kind)];
  }
  /// Parts of the domain that are connected through faces, and to which of them a cell belongs.
  [[nodiscard]] int parts() const { return parts_; }
  [[nodiscard]] int part(Record cell) const { return parts_ == 1 ? 0 : cells_->part[cell]; }
  /// True if some face of a part is of this kind: on side `side`, on any side.
  [[nodiscard]] bool has_face(int part, int side, Face kind) const;
  [[nodiscard]] bool has_face(int part, Face kind) const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  /// Faces by side and kind.
  using FaceCount = std::array<std::array<std::int64_t, 4>, 6>;
  /// What lies behind a face of a cell.
  struct Behind {
    Record cell;  ///< or negative: in a hole -1 - number of its condition
    Face face;
  };
  /// What the faces on a side of the bounding box mean: one for all, or one for each lattice place on the side.
  struct SideFaces {
    std::array<int, 3> extent{1, 1, 1};
    std::vector<Face> faces{Face::velocity};

    [[nodiscard]] Face at(const std::array<std::int32_t, 3>& position) const {
      const auto i = [&](int a) { return extent[a] == 1 ? 0 : position[a]; };
      return faces[i(0) + extent[0] * (i(1) + std::int64_t{extent[1]} * i(2))];
    }
    [[nodiscard]] bool has(Face face) const { return std::find(faces.begin(), faces.end(), face) != faces.end(); }
    /// visit(position) for the places.
    template <class Visit>
    void for_places(const Visit& visit) const;
  };

  /// The coarse boxes of the mesh, each of so many cells of the finest lattice.
  struct Boxes {
    std::array<int, 3> extent{1, 1, 1};
    std::array<int, 3> shift{};  // cells per box: 2^shift
    Unset<std::int32_t> part;    // [box], x fastest: of the domain, or of a hole -1 - number of its condition
  };

  /// Where cells are. Grids whose cells are the same share it.
  struct Cells {
    Unset<Record> lattice;                        // known place -> cell, or -1 - condition of the hole, x fastest
    Unset<std::array<std::int32_t, 3>> position;  // cell -> lattice
    Unset<std::int32_t> part;                     // cell -> part, if there are several
  };
  struct Connections {
    std::array<Unset<Record>, 6> neighbour;  // [side][record]: record behind the face
    std::array<Unset<Face>, 6> face;         // [side][record]
  };

  Grid() = default;
  [[nodiscard]] Grid coarsen(const Coarsening& coarsening, std::shared_ptr<const Partition> partition) const;
  /// The coarse box that places i of direction a are in (the first of those that a cell holds).
  [[nodiscard]] int box_of(int a, int i) const;
  /// Numbers the cells at places that are in a part of the domain, and finds what lies behind their faces.
  void find_cells();
  void number_cells();
  void find_parts(Cells& cells) const;
  /// Finds what lies behind the faces of cells.
  void connect();
  /// Stores the unknowns of upper boundary faces (stores_hat).
  void store_hats();
  /// A cell that is not here.
  static constexpr Record unknown = std::numeric_limits<Record>::max();
  /// What `cells_->lattice` has of a place, or of one that is not here what it would have.
  [[nodiscard]] Record at_place(const std::array<std::int32_t, 3>& position) const;
  /// Of the domain, or of a hole -1 - number of its condition.
  [[nodiscard]] std::int32_t part_at(const std::array<std::int32_t, 3>& position) const;
  /// Of a place of the lattice in `cells_->lattice`, or -1 if it is not here.
  [[nodiscard]] std::int64_t place(const std::array<std::int32_t, 3>& position) const;
  void find_faces_of_parts();
  /// Of a cell at a position of the lattice.
  [[nodiscard]] Behind behind(const std::array<std::int32_t, 3>& position, int side) const;
  /// Whether places that become one have one meaning.
  [[nodiscard]] bool side_pairs_up(int side, const Coarsening& pairs) const;
  [[nodiscard]] SideFaces coarsen_side(int side, const Coarsening& coarsening) const;
  /// True if the normal unknowns of an upper face have a hat-only record.
  [[nodiscard]] bool stores_hat(Record cell, int side) const;

  int dim_ = 0;
  bool boundary_hats_ = false;
  std::shared_ptr<const Partition> partition_;
  std::shared_ptr<const Boxes> boxes_;
  std::array<int, 3> extent_{1, 1, 1};
  std::array<int, 3> first_{};         // place of the lattice that is first here,
  std::array<int, 3> known_{1, 1, 1};  // and how many are, in each direction; they may wrap
  std::int64_t cell_count_ = 0;
  std::array<int, 3> copy_extent_{1, 1, 1};  // of each of copies()
  std::array<int, 3> numbering_{0, 1, 2};
  std::array<int, 3> whole_numbering_{0, 1, 2};  // of all cells, without cuts
  Metric metric_;
  std::array<bool, 3> periodic_{};
  std::array<SideFaces, 6> side_faces_{};
  std::vector<Face> hole_faces_;  // [number of a condition]
  std::vector<bool> hole_rests_;  // the same: whether no boundary hats are stored there; or empty
  VectorLayout layout_;
  std::shared_ptr<const Cells> cells_;
  std::shared_ptr<const Connections> connections_;
  FaceCount face_count_{};
  int parts_ = 1;
  std::vector<std::uint32_t> part_faces_;    // [part]: bit 4 side + kind, if there are several
  std::vector<std::uint8_t> hat_direction_;  // hat-only record -> direction
};

}  // namespace solenoid
