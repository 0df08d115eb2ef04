#include "engine/reference/reference_level.hpp"

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include "level/patch_scale.hpp"

namespace solenoid::reference {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Numbers = std::vector<std::int64_t>;

/// Adds a local matrix at rows and columns with numbers >= 0.
void assemble(const MatrixXd& local, const std::vector<int>& rows, const std::vector<int>& columns, MatrixXd& matrix) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] >= 0 && columns[j] >= 0) matrix(rows[i], columns[j]) += local(i, j);
    }
  }
}

template <class Container>
Container joined(Container first, const Container& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Eigen::LLT<MatrixXd> factorise(const MatrixXd& matrix, const char* what) {
  Eigen::LLT<MatrixXd> factors(matrix);
  if (matrix.size() > 0 && (factors.info() != Eigen::Success || factors.rcond() < 1e-13)) {
    throw std::logic_error("reference engine: " + std::string(what) +
                           " of a patch is singular; a local problem must have no kernel but the constant pressure");
  }
  return factors;
}

bool upper_in(int bits, int a) { return (bits >> a & 1) != 0; }

}  // namespace

PatchSystem::PatchSystem(const WeakForm& form, int dim, const PatchKind& kind)
    : form_(form), dim_(dim), components_(static_cast<std::size_t>(form.components())) {
  const int cells = 1 << dim;
  const int pressures = form.has_pressure() ? static_cast<int>(form.pressure().functions().size()) : 0;
  for (int bits = 0; bits < cells; ++bits) {
    for (int j = 0; j < pressures; ++j) pressure_.push_back({bits, j});
  }
  const auto count = static_cast<Eigen::Index>(pressure_.size());
  MatrixXd schur = MatrixXd::Zero(count, count);

  for (int c = 0; c < form.components(); ++c) {
    Component& component = components_[c];
    const auto number = enumerate(form.fields()[c], kind, component);
    const auto size = static_cast<Eigen::Index>(component.unknowns.size());
    MatrixXd matrix = MatrixXd::Zero(size, size);
    component.divergence = MatrixXd::Zero(count, size);
    for (int bits = 0; bits < cells; ++bits) {
      assemble(form.cell(c), number[bits], number[bits], matrix);
      std::vector<int> rows;
      for (int j = 0; j < pressures; ++j) rows.push_back(bits * pressures + j);
      if (form.has_pressure()) assemble(form.divergence(c), rows, number[bits], component.divergence);
      for (int a = 0; a < dim; ++a) {
        if (a == form.fields()[c].parallel()) continue;
        const int upper = upper_in(bits, a) ? 1 : 0;
        assemble(kind[a].weight[upper] * form.end(2 * a + upper, c), number[bits], number[bits], matrix);
        if (upper == 0) {
          const auto both = joined(number[bits], number[bits | 1 << a]);
          assemble(form.face(a, c), both, both, matrix);
        }
      }
    }
    if (!form.has_pressure()) {
      component.local = matrix;
      component.subspace = without_traces(kind);
      if (component.subspace.size() > 0) matrix = component.subspace.transpose() * matrix * component.subspace;
    }
    component.matrix = factorise(matrix, "the velocity block");
    if (form.has_pressure()) schur += component.divergence * component.matrix.solve(component.divergence.transpose());
  }
  if (!form.has_pressure()) return;

  constant_ = VectorXd::Zero(count);
  bool open = false;
  for (int a = 0; a < dim; ++a) open = open || kind[a].hat[0] || kind[a].hat[1];
  if (!open) {
    for (int bits = 0; bits < cells; ++bits) constant_[bits * pressures] = 1.0;
    constant_.normalize();
  }
  schur_ = factorise(schur + schur.trace() / static_cast<double>(count) * constant_ * constant_.transpose(),
                     "the Schur complement");
}

std::vector<std::vector<int>> PatchSystem::enumerate(const LocalField& field, const PatchKind& kind,
                                                     Component& component) const {
  const int c = field.parallel();
  const auto& functions = field.functions();
  std::vector<std::vector<int>> number(1 << dim_, std::vector<int>(functions.size(), -1));
  std::map<std::pair<int, int>, int> inner_hat;  // (bits, offset) of the upper cell -> number
  for (int bits = 0; bits < 1 << dim_; ++bits) {
    for (std::size_t j = 0; j < functions.size(); ++j) {
      const auto& function = functions[j];
      const int next = static_cast<int>(component.unknowns.size());
      const bool lower_hat = c >= 0 && function.index[c] == 0;
      const bool inner = c >= 0 && upper_in(bits, c) ? lower_hat : function.upper_hat;
      if (inner) {
        // Seen first from the lower cell as its upper hat, then from the upper cell as its lower hat.
        const auto entry = inner_hat.emplace(std::pair(bits | 1 << c, function.offset), next);
        number[bits][j] = entry.first->second;
        if (!entry.second) continue;
      } else if ((lower_hat && !kind[c].hat[0]) || (function.upper_hat && !kind[c].hat[1])) {
        continue;
      } else {
        number[bits][j] = next;
      }
      component.unknowns.push_back({bits, static_cast<int>(j)});
    }
  }
  return number;
}

Numbers PatchSystem::numbers(const Grid& grid, const std::array<Record, 8>& cells, const LocalField& field,
                             const std::vector<Unknown>& unknowns) const {
  std::vector<Numbers> of_cell;
  for (int bits = 0; bits < 1 << dim_; ++bits) of_cell.push_back(field.numbers(grid, cells[bits]));
  Numbers result;
  result.reserve(unknowns.size());
  for (const auto& [bits, function] : unknowns) result.push_back(of_cell[bits][function]);
  return result;
}

MatrixXd PatchSystem::without_traces(const PatchKind& kind) const {
  const LocalField& field = form_.fields()[0];
  const auto functions = static_cast<Eigen::Index>(field.functions().size());
  const Eigen::Index points = form_.trace(0).rows();
  std::vector<std::pair<int, int>> faces;  // (bits, side)
  for (int bits = 0; bits < 1 << dim_; ++bits) {
    for (int a = 0; a < dim_; ++a) {
      const int end = upper_in(bits, a) ? 1 : 0;
      if (kind[a].cut[end]) faces.emplace_back(bits, 2 * a + end);
    }
  }
  if (faces.empty()) return {};
  MatrixXd traces = MatrixXd::Zero(points * static_cast<Eigen::Index>(faces.size()), functions << dim_);
  for (std::size_t i = 0; i < faces.size(); ++i) {
    const auto [bits, side] = faces[i];
    traces.block(points * static_cast<Eigen::Index>(i), bits * functions, points, functions) = form_.trace(side);
  }
  return traces.fullPivLu().kernel();
}

VectorXd PatchSystem::own_residual(const Grid& grid, const std::array<Record, 8>& cells, const VectorXd& b,
                                   const VectorXd& x) const {
  const Numbers values = numbers(grid, cells, form_.fields()[0], components_[0].unknowns);
  VectorXd residual = VectorXd::Zero(b.size());
  scatter_add(gather(b, values) - components_[0].local * gather(x, values), values, residual);
  return residual;
}

void PatchSystem::solve_add(const Grid& grid, const std::array<Record, 8>& cells, const VectorXd& residual,
                            VectorXd& correction) const {
  if (!form_.has_pressure()) {
    const Numbers values = numbers(grid, cells, form_.fields()[0], components_[0].unknowns);
    const auto& [unknowns, local, subspace, matrix, divergence] = components_[0];
    const VectorXd f = gather(residual, values);
    return scatter_add(
        subspace.size() > 0 ? VectorXd(subspace * matrix.solve(subspace.transpose() * f)) : VectorXd(matrix.solve(f)),
        values, correction);
  }
  // A u - D^T p = f, -D u = g:  S p = -g - D A^-1 f,  u = A^-1 (f + D^T p).
  const Numbers pressures = numbers(grid, cells, form_.pressure(), pressure_);
  std::vector<Numbers> velocities;
  VectorXd rhs = -gather(residual, pressures);
  for (int c = 0; c < dim_; ++c) {
    velocities.push_back(numbers(grid, cells, form_.fields()[c], components_[c].unknowns));
    const VectorXd f = gather(residual, velocities[c]);
    rhs -= components_[c].divergence * components_[c].matrix.solve(f);
  }
  rhs -= constant_ * constant_.dot(rhs);
  const VectorXd p = schur_.solve(rhs);
  scatter_add(p, pressures, correction);
  for (int c = 0; c < dim_; ++c) {
    const VectorXd f = gather(residual, velocities[c]) + components_[c].divergence.transpose() * p;
    scatter_add(components_[c].matrix.solve(f), velocities[c], correction);
  }
}

std::vector<bool> unknowns(const Level& level) {
  const Grid& grid = level.grid;
  const int dim = level.equation.dim;
  const int order = level.equation.order;
  const int size = level.equation.record();
  const int block = power(order + 1, dim);
  const int hats = power(order + 1, dim - 1);
  std::vector<bool> unknown(level.size(), false);
  for (const Record cell : grid.layout().cells()) {
    for (int i = 0; i < size; ++i) unknown[level.index(cell, i)] = true;
  }
  if (level.equation.velocities() == 0) return unknown;
  // The hats are the first numbers of a component's block.
  const auto set_hats = [&](Record record, int c, bool value) {
    for (int i = 0; i < hats; ++i) unknown[level.index(record, c * block + i)] = value;
  };
  for (const Record cell : grid.layout().cells()) {
    for (int c = 0; c < level.equation.velocities(); ++c) set_hats(cell, c, !normal_fixed(grid.face(cell, 2 * c)));
  }
  for (const Record record : grid.layout().hats()) {
    set_hats(record, grid.hat_direction(record), !normal_fixed(grid.hat_face(record)));
  }
  return unknown;
}

ReferenceLevel::ReferenceLevel(const Level& level, bool at_points)
    : level_(level),
      at_points_(at_points),
      form_(level.equation, level.coefficients, level.grid.metric().uniform_width()),
      systems_(level.patches.kinds.size()),
      small_systems_(level.small_patches.shapes.size()) {
  if (level.has_coefficients_by_cell() || level.is_sheared()) {
    const AffineMap* const map = level.grid.metric().map();
    spatial_ = std::make_unique<SpatialForm>(level.equation, level.coefficients.coupling,
                                             map == nullptr ? AffineMap::identity(level.equation.dim) : *map,
                                             level.grid.metric().uniform_width());
  }
}

void ReferenceLevel::mask(const Level& level, VectorXd& x) {
  const auto unknown = unknowns(level);
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    if (!unknown[i]) x[i] = 0.0;
  }
}

VectorXd ReferenceLevel::apply(const VectorXd& x) const {
  const Grid& grid = level_.grid;
  const int dim = level_.equation.dim;
  VectorXd y = VectorXd::Zero(x.size());
  if (spatial_) {
    apply_spatial(*spatial_, level_, at_points_, x, y);
    mask(level_, y);
    return y;
  }
  for (const Record cell : grid.layout().cells()) {
    const Numbers pressures = form_.pressure().numbers(grid, cell);
    for (int c = 0; c < form_.components(); ++c) {
      const LocalField& field = form_.fields()[c];
      const Numbers here = field.numbers(grid, cell);
      const VectorXd u = gather(x, here);
      scatter_add(form_.cell(c) * u, here, y);
      if (form_.has_pressure()) {
        scatter_add(-(form_.divergence(c).transpose() * gather(x, pressures)), here, y);
        scatter_add(-(form_.divergence(c) * u), pressures, y);
      }
      for (int side = 0; side < 2 * dim; ++side) {
        const int a = side / 2;
        if (a == field.parallel()) continue;
        const Face face = grid.face(cell, side);
        if (face != Face::interior) {
          scatter_add(face_weight(face) * (form_.end(side, c) * u), here, y);
        } else if (side % 2 == 1) {
          const Numbers both = joined(here, field.numbers(grid, grid.neighbour(cell, side)));
          scatter_add(form_.face(a, c) * gather(x, both), both, y);
        }
      }
    }
  }
  mask(level_, y);
  return y;
}

VectorXd ReferenceLevel::correction(int colour, const VectorXd& b, const VectorXd& x) {
  const VectorXd residual = b - apply(x);
  if (level_.has_coefficients_by_cell()) return varying_correction(colour, residual);
  VectorXd correction = VectorXd::Zero(residual.size());
  for (const PatchRun& run : level_.patches.colours.at(colour)) {
    auto& system = systems_[run.kind];
    if (!system) {
      system = std::make_unique<PatchSystem>(form_, level_.equation.dim, level_.patches.kinds[run.kind]);
    }
    for (auto i = run.begin; i < run.end; ++i) {
      const auto cells = patch_cells(level_.grid, level_.patches.lower_cell[i]);
      system->solve_add(level_.grid, cells, system->cut() ? system->own_residual(level_.grid, cells, b, x) : residual,
                        correction);
    }
  }
  return correction;
}

VectorXd ReferenceLevel::varying_correction(int colour, const VectorXd& residual) {
  const int velocities = level_.equation.velocities() * power(level_.equation.n(), level_.equation.dim);
  VectorXd correction = VectorXd::Zero(residual.size());
  for (const PatchRun& run : level_.patches.colours.at(colour)) {
    for (auto i = run.begin; i < run.end; ++i) {
      const Record lower = level_.patches.lower_cell[i];
      const PatchScale scale = patch_scale(level_, lower);
      auto& form = varying_forms_[scale.reaction];
      if (!form) {
        form = std::make_unique<WeakForm>(level_.equation, Coefficients{1.0, scale.reaction},
                                          level_.grid.metric().uniform_width());
      }
      auto& system = varying_systems_[{run.kind, scale.reaction}];
      if (!system) {
        system = std::make_unique<PatchSystem>(*form, level_.equation.dim, level_.patches.kinds[run.kind]);
      }
      const double root = std::sqrt(scale.viscosity);
      VectorXd scaling(residual.size());  // T
      for (Eigen::Index at = 0; at < scaling.size(); ++at) {
        const bool velocity = at / interleave % level_.equation.record() < velocities;
        scaling[at] = velocity ? 1.0 / root : root;
      }
      VectorXd of_patch = VectorXd::Zero(residual.size());
      system->solve_add(level_.grid, patch_cells(level_.grid, lower), scaling.cwiseProduct(residual), of_patch);
      correction += scaling.cwiseProduct(of_patch);
    }
  }
  return correction;
}

VectorXd ReferenceLevel::small_correction(int group, const VectorXd& r) {
  level_.require_constant_coefficients();
  level_.require_boxes();
  const auto& [shape, patches] = level_.small_patches.groups.at(group);
  auto& system = small_systems_[shape];
  if (!system) {
    system = std::make_unique<SmallSystem>(form_, level_.grid, level_.small_patches.shapes[shape], patches.front());
  }
  VectorXd correction = VectorXd::Zero(r.size());
  for (const SmallRecords& patch : patches) system->solve_add(level_.grid, patch, r, correction);
  return correction;
}

template <class Visit>
void ReferenceLevel::for_each_embedding(const Level& coarse_level, const Visit& visit) const {
  const Grid& fine = level_.grid;
  const Grid& coarse = coarse_level.grid;
  const int dim = level_.equation.dim;
  const WeakForm coarse_form(level_.equation, level_.coefficients, coarse.metric().uniform_width());
  for (int bits = 0; bits < 1 << dim; ++bits) {
    std::array<bool, 3> upper{};
    bool exists = true;
    for (int a = 0; a < dim; ++a) {
      upper[a] = upper_in(bits, a);
      exists = exists && (level_.coarsening.merges(a) || !upper[a]);
    }
    if (!exists) continue;
    for (int f = 0; f <= level_.equation.velocities(); ++f) {
      const MatrixXd matrix =
          embedding(level_.equation, fine.metric().uniform_width(), f, level_.coarsening.merges(), upper);
      for (const Record parent : coarse.layout().cells()) {
        auto position = coarse.position(parent);
        for (int a = 0; a < dim; ++a) {
          position[a] = level_.coarsening.first_child(a, position[a]) + (upper[a] ? 1 : 0);
        }
        const Record child = fine.at(position);
        const LocalField& field = form_.fields()[f];
        // The upper hats are written here only if they are not the lower hats of another cell.
        const bool owns_upper =
            f < level_.equation.velocities() && !fine.layout().is_cell(fine.neighbour(child, 2 * f + 1));
        Numbers numbers = field.numbers(fine, child);
        for (std::size_t j = 0; j < numbers.size(); ++j) {
          if (field.functions()[j].upper_hat && !owns_upper) numbers[j] = level_.index(fine.layout().null(), 0);
        }
        visit(coarse_form.fields()[f].numbers(coarse, parent), numbers, matrix);
      }
    }
  }
}

VectorXd ReferenceLevel::restricted(const Level& coarse_level, const VectorXd& fine) const {
  VectorXd coarse = VectorXd::Zero(coarse_level.size());
  for_each_embedding(coarse_level, [&](const Numbers& coarse_numbers, const Numbers& fine_numbers, const MatrixXd& e) {
    scatter_add(e.transpose() * gather(fine, fine_numbers), coarse_numbers, coarse);
  });
  mask(coarse_level, coarse);
  return coarse;
}

VectorXd ReferenceLevel::prolonged(const Level& coarse_level, const VectorXd& coarse) const {
  VectorXd fine = VectorXd::Zero(level_.size());
  for_each_embedding(coarse_level, [&](const Numbers& coarse_numbers, const Numbers& fine_numbers, const MatrixXd& e) {
    scatter_add(e * gather(coarse, coarse_numbers), fine_numbers, fine);
  });
  mask(level_, fine);
  return fine;
}

VectorXd ReferenceLevel::projected(VectorXd x) const {
  const int dim = level_.equation.dim;
  const auto unknown = unknowns(level_);
  // A field is constant if its lowest mode is equal in all records and the others vanish: for the pressure mode
  // (0, 0, 0), for velocity component c the hat with modes (0, 0), which come first in their blocks.
  for (const auto& [part, field, records, carriers] : level_.constants) {
    VectorXd constant = VectorXd::Zero(x.size());
    const int offset = field * power(level_.equation.n(), dim);
    const auto set = [&](Record record) {
      const std::int64_t i = level_.index(record, offset);
      if (unknown[i]) constant[i] = 1.0;
    };
    if (records.empty()) {
      for (const Record record : level_.grid.layout().records()) set(record);
    } else {
      for (const Record record : records) set(record);
    }
    x -= constant * (constant.dot(x) / constant.squaredNorm());
  }
  return x;
}

double ReferenceLevel::l2_norm(const VectorXd& x) const {
  const Equation& equation = level_.equation;
  const Points points = cell_points(equation.dim, level_.grid.metric().uniform_width(), gauss(equation.n() + 1));
  double square = 0.0;
  for (int c = 0; c < form_.components(); ++c) {
    const LocalField& field = form_.fields()[c];
    const MatrixXd functions = field.tabulate(points.position).value;
    for (const Record cell : level_.grid.layout().owned_cells()) {
      const VectorXd values = functions * x(field.numbers(level_.grid, cell));
      square += points.weight.dot(values.cwiseAbs2());
    }
  }
  return std::sqrt(square);
}

}  // namespace solenoid::reference
