#include "engine/cuda/convection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "element/basis.hpp"
#include "engine/cuda/kernels/convection.hpp"
#include "engine/cuda/upper_hats.hpp"
#include "engine/tables.hpp"
#include "problem/affine_map.hpp"

namespace solenoid::cuda {
namespace {

ConvectionTables make_tables(const Level& level) {
  ConvectionTables tables{};
  const int order = level.equation.order;
  const int points = convection_points(order);
  const int half_points = (points + 1) / 2;
  const Quadrature rule = gauss(points);
  for (int i = 0; i <= order; ++i) tables.end[i] = std::sqrt(2.0 * i + 1.0);
  for (int h = 0; h < half_points; ++h) {
    const double x = rule.points[h];
    const auto psi = legendre(order, x);
    const auto slopes = legendre(order, x, 1);
    auto phi = continuous(order, x);  // the hats in the place of 1 and x - 1/2
    std::rotate(phi.begin() + 1, phi.end() - 1, phi.end());
    phi[0] = 1.0;
    phi[1] = x - 0.5;
    const auto set = [&](ConvectionTables::Space space, const std::vector<double>& values) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        tables.value[space][h][i] = values[i];
        tables.test[space][h][i] = rule.weights[h] * values[i];
      }
    };
    set(ConvectionTables::O, psi);
    set(ConvectionTables::P, phi);
    for (int i = 0; i <= order; ++i) tables.test_derivative[h][i] = rule.weights[h] * slopes[i];
  }
  // psi_i' = 2 psi_i(1) sum of psi_m(1) psi_m over m < i of the other parity, where psi_0 = phi_0, psi_1 = 2 sqrt(3)
  // phi_1 and phi_{j+1} = b_j = r_{j+1} psi_{j+1} - r_j psi_{j-1}, r_j = 1 / (2 psi_{j-1}(1) psi_j(1)).
  double psi[max_n][max_n]{};
  psi[0][0] = 1.0;
  const auto r = [&](int j) { return 0.5 / (tables.end[j - 1] * tables.end[j]); };
  for (int m = 1; m < order; ++m) {
    psi[m][m] = 1.0 / r(m);
    if (m == 1) continue;
    for (int l = 0; l < m; ++l) psi[m][l] = r(m - 1) / r(m) * psi[m - 2][l];
  }
  for (int i = 1; i <= order; ++i) {
    for (int m = i - 1; m >= 0; m -= 2) {
      for (int l = 0; l <= m; ++l) tables.derivative[i][l] += 2.0 * tables.end[i] * tables.end[m] * psi[m][l];
    }
  }
  const std::array<double, 3> scale = convection_scale(level.grid);
  std::copy(scale.begin(), scale.end(), tables.scale);
  return tables;
}

/// Outflow faces, of which a record here has the hats.
std::vector<OpenFace> open_faces(const Grid& grid) {
  std::vector<OpenFace> faces;
  for (const Record r : grid.layout().records()) {
    if (grid.layout().is_cell(r)) {
      for (int a = 0; a < grid.dim(); ++a) {
        if (grid.face(r, 2 * a) == Face::outflow) faces.push_back({r, 2 * a});
      }
    } else if (grid.hat_face(r) == Face::outflow) {
      faces.push_back({r, 2 * grid.hat_direction(r) + 1});
    }
  }
  return faces;
}

/// What cells of all kinds share.
class CudaConvection : public Convection {
 public:
  CudaConvection(Shared& shared, const Level& level, ConvectiveFlux flux)
      : shared_(shared),
        equation_(level.equation),
        device_(shared.level(level)),
        kernels_(kernel_table<double>(equation_.kind, equation_.dim, equation_.order)),
        cells_(level.grid.layout().near_cells().size()),
        flux_(flux),
        rate_(shared.engine, 1) {}

  double apply(const double* u, double* y, double* /*work*/) final {
    shared_.engine.zero(rate_.data(), sizeof(std::uint64_t));
    clear_hats({device_->topology(), equation_.dim, equation_.order, y}, shared_.stream);
    convect_cells(u, y);
    std::uint64_t rate = 0;
    rate_.download(&rate);
    return std::bit_cast<double>(rate);
  }

 protected:
  /// Hats of y are zero.
  virtual void convect_cells(const double* u, double* y) = 0;

  Shared& shared_;
  Equation equation_;
  std::shared_ptr<DeviceLevel> device_;
  const KernelTable<double>& kernels_;
  std::int32_t cells_;
  ConvectiveFlux flux_;
  Vector<std::uint64_t> rate_;
};

class ConvectionInBoxes final : public CudaConvection {
 public:
  ConvectionInBoxes(Shared& shared, const Level& level, ConvectiveFlux flux)
      : CudaConvection(shared, level, flux), tables_(make_tables(level)) {
    const auto faces = open_faces(level.grid);
    open_faces_ = {shared.engine, faces};
    open_face_count_ = static_cast<std::int32_t>(faces.size());
  }

 private:
  void convect_cells(const double* u, double* y) override {
    kernels_.convect(
        {tables_, device_->topology(), device_->blocks(), cells_, shared_.multiprocessors, flux_, u, y, rate_.data()},
        shared_.stream);
    add_outflow({tables_, equation_.dim, equation_.order, u, y}, open_faces_.data(), open_face_count_, shared_.stream);
  }

  ConvectionTables tables_;
  Array<OpenFace> open_faces_;
  std::int32_t open_face_count_ = 0;
};

class ConvectionInShearedCells final : public CudaConvection {
 public:
  ConvectionInShearedCells(Shared& shared, const Level& level, ConvectiveFlux flux)
      : CudaConvection(shared, level, flux),
        tables_(make_point_tables(equation_.order, convection_points(equation_.order))) {
    const AffineMap& map = *level.grid.metric().map();
    const Matrix3 metric = convection_metric(map);
    const std::array<double, 3> scale = convection_scale(level.grid);
    for (int a = 0; a < equation_.dim; ++a) {
      std::copy(metric[a].begin(), metric[a].end(), factors_.metric[a]);
      factors_.scale[a] = scale[a];
      factors_.crossing[a] = scale[a] / map.jacobian();
    }
  }

 private:
  void convect_cells(const double* u, double* y) override {
    kernels_.convect_sheared({&tables_, factors_, device_->topology(), cells_, flux_, u, y, rate_.data()},
                             shared_.stream);
  }

  PointTables tables_;
  ShearedConvectionFactors factors_{};
};

}  // namespace

std::unique_ptr<Convection> make_convection(Shared& shared, const Level& level, ConvectiveFlux flux) {
  if (level.grid.metric().map() != nullptr) return std::make_unique<ConvectionInShearedCells>(shared, level, flux);
  return std::make_unique<ConvectionInBoxes>(shared, level, flux);
}

}  // namespace solenoid::cuda
