#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/agreement.hpp"
#include "base/new_file.hpp"
#include "mesh/grid.hpp"
#include "mesh/record.hpp"
#include "output/vtk_file.hpp"
#include "problem/names.hpp"
#include "solenoid/error.hpp"
#include "solenoid/output.hpp"
#include "solution/cell_evaluator.hpp"
#include "solution/field_evaluator.hpp"
#include "solution/gradients.hpp"

namespace solenoid {

namespace {

constexpr int lagrange_quadrilateral = 70;
constexpr int lagrange_hexahedron = 72;
constexpr int linear_quadrilateral = 9;
constexpr int linear_hexahedron = 12;

// Where VTK (file version 2.2) counts the node (i, j, l) of a Lagrange quadrilateral or hexahedron of degree p:
// corners, then the inside of edges, of faces, of the cell.
int lagrange_node(int dim, int p, int i, int j, int l) {
  const auto end = [p](int index) { return index == 0 || index == p; };
  const int inner = p - 1;
  const int corner = i != 0 ? (j != 0 ? 2 : 1) : (j != 0 ? 3 : 0);
  const int top = l != 0 ? 1 : 0;
  const bool flat = dim == 2;
  if (end(i) && end(j) && (flat || end(l))) return corner + 4 * top;
  int node = flat ? 4 : 8;
  if (end(j) && (flat || end(l)) && !end(i)) return node + (i - 1) + (j != 0 ? 2 * inner : 0) + 4 * top * inner;
  if (end(i) && (flat || end(l)) && !end(j)) return node + (j - 1) + (i != 0 ? inner : 3 * inner) + 4 * top * inner;
  if (flat) return node + 4 * inner + (i - 1) + inner * (j - 1);
  node += 8 * inner;
  if (end(i) && end(j)) return node + (l - 1) + inner * corner;
  node += 4 * inner;
  if (end(i)) return node + (j - 1) + inner * (l - 1) + (i != 0 ? inner * inner : 0);
  node += 2 * inner * inner;
  if (end(j)) return node + (i - 1) + inner * (l - 1) + (j != 0 ? inner * inner : 0);
  node += 2 * inner * inner;
  if (end(l)) return node + (i - 1) + inner * (j - 1) + top * inner * inner;
  return node + 2 * inner * inner + (i - 1) + inner * ((j - 1) + inner * (l - 1));
}

// What every cell of the mesh becomes: points (i, j, l) / degree, x fastest, and VTK cells made of them.
struct Subcells {
  int per_direction;
  int points;
  int count;  // VTK cells
  int nodes;  // points per VTK cell
  int type;
  std::vector<int> connectivity;

  Subcells(int dim, int order, int subdivide) {
    per_direction = subdivide > 0 ? subdivide : order + 1;
    const int side = per_direction + 1;
    points = power(side, dim);
    const int layers = dim == 3 ? side : 1;
    if (subdivide == 0) {
      count = 1;
      nodes = points;
      type = dim == 3 ? lagrange_hexahedron : lagrange_quadrilateral;
      connectivity.resize(points);
      for (int l = 0; l < layers; ++l) {
        for (int j = 0; j < side; ++j) {
          for (int i = 0; i < side; ++i) {
            connectivity[lagrange_node(dim, per_direction, i, j, l)] = i + side * (j + side * l);
          }
        }
      }
    } else {
      count = power(subdivide, dim);
      nodes = power(2, dim);
      type = dim == 3 ? linear_hexahedron : linear_quadrilateral;
      for (int l = 0; l < (dim == 3 ? subdivide : 1); ++l) {
        for (int j = 0; j < subdivide; ++j) {
          for (int i = 0; i < subdivide; ++i) {
            for (int top = 0; top <= dim - 2; ++top) {
              const int first = i + side * (j + side * (l + top));
              connectivity.insert(connectivity.end(), {first, first + 1, first + 1 + side, first + side});
            }
          }
        }
      }
    }
  }

  // Reference coordinates of the points.
  [[nodiscard]] TensorPoints xi() const {
    std::vector<double> line(per_direction + 1);
    for (int i = 0; i <= per_direction; ++i) line[i] = static_cast<double>(i) / per_direction;
    return {line, line, line};
  }
};

/// Of files with Lagrange cells, or linear ones.
std::string_view version_for(int subdivide) { return subdivide == 0 ? "2.2" : "1.0"; }

/// Values at all points of a file.
struct PointData {
  /// Fills in those of a cell, `components` for each point. One object serves one thread.
  using Fill = std::function<void(std::int64_t cell, double* values)>;

  std::string name;
  int components;
  std::function<Fill(const TensorPoints& xi)> make_fill;
};

/// What a file shows of a solution.
struct Content {
  const Solution& solution;
  std::string attributes;  ///< which data viewers show first
  std::vector<PointData> data;
};

PointData vectors(const Solution& solution, const std::string& name) {
  return {name, 3, [&solution](const TensorPoints& xi) -> PointData::Fill {
            CellEvaluator evaluator(solution);
            evaluator.set_points(xi);
            std::vector<double> u(static_cast<std::size_t>(evaluator.points()) * evaluator.dim());
            return [evaluator, u](std::int64_t cell, double* values) mutable {
              const int dim = evaluator.dim();
              evaluator.velocity(cell, u.data());
              for (int q = 0; q < evaluator.points(); ++q) {
                for (int c = 0; c < 3; ++c) values[3 * q + c] = c < dim ? u[q * dim + c] : 0.0;
              }
            };
          }};
}

/// The pressure, or Poisson's u.
PointData scalars(const Solution& solution, const std::string& name) {
  return {name, 1, [&solution](const TensorPoints& xi) -> PointData::Fill {
            CellEvaluator evaluator(solution);
            evaluator.set_points(xi);
            return [evaluator](std::int64_t cell, double* values) mutable { evaluator.pressure(cell, values); };
          }};
}

PointData derived(const Solution& solution, FlowField field) {
  const auto [first, count] = parts_of(field, solution.grid().dim());
  return {std::string(name_of(field)), count, [&solution, field, first = first, count = count](const TensorPoints& xi) {
            FieldEvaluator evaluator(solution);
            evaluator.set_points(xi);
            return PointData::Fill([=](std::int64_t cell, double* values) mutable {
              evaluator.for_points(cell, [&](std::size_t q, const FlowAtPoint& at) {
                const FieldValue value = value_of(field, at);
                std::copy_n(value.begin() + first, count, values + count * q);
              });
            });
          }};
}

/// In the order that ParaView has: xx, yy, zz, xy, yz, xz.
PointData stresses(const Averages& averages) {
  return {"reynolds_stress", 6, [&averages](const TensorPoints& xi) -> PointData::Fill {
            const int dim = averages.flow.grid().dim();
            std::vector<std::pair<int, CellEvaluator>> entries;
            for (int i = 0; i < std::ssize(symmetric_entries); ++i) {
              const auto [c, d] = symmetric_entries[i];
              if (d >= dim || c >= dim) continue;
              entries.emplace_back(i, averages.stresses[Averages::stress_index(dim, c, d)]).second.set_points(xi);
            }
            std::vector<double> one(entries.front().second.points());
            return [entries, one](std::int64_t cell, double* values) mutable {
              std::fill_n(values, 6 * one.size(), 0.0);
              for (auto& [i, evaluator] : entries) {
                evaluator.pressure(cell, one.data());
                for (std::size_t q = 0; q < one.size(); ++q) values[6 * q + i] = one[q];
              }
            };
          }};
}

Content content_of(const Solution& solution, std::span<const FlowField> fields) {
  if (solution.problem().equation == EquationKind::poisson) {
    if (!fields.empty()) throw InputError("write_vtu: the solution of Poisson's equation has no velocity");
    return {solution, "Scalars=\"u\"", {scalars(solution, "u")}};
  }
  Content content{solution,
                  "Vectors=\"velocity\" Scalars=\"pressure\"",
                  {vectors(solution, "velocity"), scalars(solution, "pressure")}};
  for (const FlowField field : fields) content.data.push_back(derived(solution, field));
  return content;
}

/// The owned cells.
void write_piece(const Content& content, const std::filesystem::path& file, int subdivide) {
  const Grid& grid = content.solution.grid();
  const Subcells subcells(grid.dim(), content.solution.problem().order, subdivide);
  const TensorPoints xi = subcells.xi();
  const std::int64_t cells = grid.layout().owned_cells().size();

  NewFile output(file);
  VtkWriter vtu(output, cells);
  vtu.text(vtk_head("UnstructuredGrid", version_for(subdivide)));
  vtu.text("<UnstructuredGrid>\n<Piece NumberOfPoints=\"" + std::to_string(cells * subcells.points) +
           "\" NumberOfCells=\"" + std::to_string(cells * subcells.count) + "\">\n");
  vtu.text("<PointData " + content.attributes + ">\n");
  for (const PointData& data : content.data) vtu.declare("Float64", data.name, data.components);
  vtu.text("</PointData>\n<Points>\n");
  vtu.declare("Float64", "Points", 3);
  vtu.text("</Points>\n<Cells>\n");
  vtu.declare("Int64", "connectivity", 1);
  vtu.declare("Int64", "offsets", 1);
  vtu.declare("UInt8", "types", 1);
  vtu.text("</Cells>\n</Piece>\n</UnstructuredGrid>\n");
  vtu.begin_appendix();

  for (const PointData& data : content.data) {
    vtu.array<double>(data.components * subcells.points, [&] { return data.make_fill(xi); });
  }
  vtu.array<double>(3 * subcells.points, [&] {
    return [&](std::int64_t cell, double* values) {
      const Point corner = grid.corner(static_cast<Record>(cell));
      const Point widths = grid.widths(static_cast<Record>(cell));
      for (int q = 0, side = subcells.per_direction + 1; q < subcells.points; ++q) {
        const std::array<int, 3> index{q % side, q / side % side, q / side / side};
        Point x{};
        for (int a = 0; a < 3; ++a) x[a] = corner[a] + widths[a] * xi[a][index[a]];
        if (grid.metric().map() != nullptr) x = grid.metric().map()->at(x);
        std::copy(x.begin(), x.end(), values + 3 * q);
      }
    };
  });
  vtu.array<std::int64_t>(subcells.count * subcells.nodes, [&] {
    return [&](std::int64_t cell, std::int64_t* values) {
      for (const int node : subcells.connectivity) *values++ = cell * subcells.points + node;
    };
  });
  vtu.array<std::int64_t>(subcells.count, [&] {
    return [&](std::int64_t cell, std::int64_t* values) {
      for (int i = 0; i < subcells.count; ++i) values[i] = (cell * subcells.count + i + 1) * subcells.nodes;
    };
  });
  vtu.array<std::uint8_t>(subcells.count, [&] {
    return [&](std::int64_t, std::uint8_t* values) {
      std::fill_n(values, subcells.count, static_cast<std::uint8_t>(subcells.type));
    };
  });
  vtu.text("\n</AppendedData>\n</VTKFile>\n");
  output.commit();
}

/// The file that names the pieces of all ranks.
void write_index(const Content& content, const std::filesystem::path& file,
                 const std::vector<std::filesystem::path>& pieces, int subdivide) {
  NewFile output(file);
  output.stream() << vtk_head("PUnstructuredGrid", version_for(subdivide)) << "<PUnstructuredGrid GhostLevel=\"0\">\n";
  output.stream() << "<PPointData " << content.attributes << ">\n";
  for (const PointData& data : content.data) {
    output.stream() << fmt::format("<PDataArray type=\"Float64\" Name=\"{}\" NumberOfComponents=\"{}\"/>\n", data.name,
                                   data.components);
  }
  output.stream() << "</PPointData>\n<PPoints>\n"
                     "<PDataArray type=\"Float64\" Name=\"Points\" NumberOfComponents=\"3\"/>\n</PPoints>\n";
  for (const auto& piece : pieces) output.stream() << "<Piece Source=\"" << piece.filename().string() << "\"/>\n";
  output.stream() << "</PUnstructuredGrid>\n</VTKFile>\n";
  output.commit();
}

void write(const Content& content, const std::filesystem::path& file, int subdivide) {
  if (subdivide < 0) throw InputError("write_vtu: subdivide " + std::to_string(subdivide) + ", expected 0 or more");
  const Partition* const partition = content.solution.grid().partition().get();
  const bool has_pieces = file.extension() == ".pvtu";
  if (partition == nullptr && !has_pieces) return write_piece(content, file, subdivide);
  if (!has_pieces) {
    throw InputError(fmt::format("write_vtu: several ranks write '{}' and pieces beside it: expected the ending .pvtu",
                                 file.string()));
  }
  const Communicator* const ranks = partition == nullptr ? nullptr : &partition->communicator();
  const int mine = ranks == nullptr ? 0 : ranks->rank();
  std::vector<std::filesystem::path> pieces;
  for (int rank = 0; rank < (ranks == nullptr ? 1 : ranks->size()); ++rank) {
    pieces.push_back(std::filesystem::path(file).replace_extension() += fmt::format("_{}.vtu", rank));
  }
  in_agreement(ranks, [&] { write_piece(content, pieces[mine], subdivide); });
  in_agreement(ranks, [&] {
    if (mine == 0) write_index(content, file, pieces, subdivide);
  });
}

}  // namespace

void write_vtu(const Solution& solution, const std::filesystem::path& file, int subdivide,
               std::span<const FlowField> fields) {
  write(content_of(solution, fields), file, subdivide);
}

void write_vtu(const Averages& averages, const std::filesystem::path& file, int subdivide) {
  Content content = content_of(averages.flow, {});
  content.data.push_back(stresses(averages));
  content.data.push_back(scalars(averages.dissipation, "dissipation"));
  write(content, file, subdivide);
}

}  // namespace solenoid
