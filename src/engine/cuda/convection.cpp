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

namespace solenoid::cuda {
namespace {

ConvectionTables make_tables(const Level& level) {
  ConvectionTables tables{};
  const int order = level.equation.order;
  const int points = convection_points(order);
  const int half_points = (points + 1) / 2;
  const Quadrature rule = gauss(points);
  for (int h = 0; h < half_points; ++h) {
    const auto psi = legendre(order + 1, rule.points[h]);
    for (int i = 0; i <= order + 1; ++i) {
      tables.value[h][i] = psi[i];
      tables.test[h][i] = rule.weights[h] * psi[i];
    }
  }
  for (int i = 0; i <= order + 1; ++i) tables.end[i] = std::sqrt(2.0 * i + 1.0);
  for (int i = 1; i <= order + 1; ++i) tables.primitive[i] = 0.5 / (tables.end[i - 1] * tables.end[i]);
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

class CudaConvection final : public Convection {
 public:
  CudaConvection(Shared& shared, const Level& level, ConvectiveFlux flux)
      : shared_(shared),
        equation_(level.equation),
        device_(shared.level(level)),
        kernel_(kernel_table<double>(equation_.kind, equation_.dim, equation_.order).convect),
        cells_(level.grid.layout().near_cells().size()),
        upwind_(flux == ConvectiveFlux::upwind ? 1.0 : 0.0),
        tables_(make_tables(level)),
        rate_(shared.engine, 1) {
    const auto faces = open_faces(level.grid);
    open_faces_ = {shared.engine, faces};
    open_face_count_ = static_cast<std::int32_t>(faces.size());
  }

  /// `upper`: what cells have of the hats on their upper faces, fewer numbers than they have themselves.
  double apply(const double* u, double* y, double* upper) override {
    shared_.engine.zero(rate_.data(), sizeof(std::uint64_t));
    kernel_({tables_, device_->topology(), device_->blocks(), cells_, upwind_, u, y, upper, rate_.data()},
            shared_.stream);
    add_upper_hats({device_->topology(), equation_.dim, equation_.order, cells_, upper, y, true}, shared_.stream);
    add_outflow({tables_, equation_.dim, equation_.order, u, y}, open_faces_.data(), open_face_count_, shared_.stream);
    std::uint64_t rate = 0;
    rate_.download(&rate);
    return std::bit_cast<double>(rate);
  }

 private:
  Shared& shared_;
  Equation equation_;
  std::shared_ptr<DeviceLevel> device_;
  void (*kernel_)(const ConvectionArguments&, Stream);
  std::int32_t cells_;
  double upwind_;
  ConvectionTables tables_;
  Vector<std::uint64_t> rate_;
  Array<OpenFace> open_faces_;
  std::int32_t open_face_count_ = 0;
};

}  // namespace

std::unique_ptr<Convection> make_convection(Shared& shared, const Level& level, ConvectiveFlux flux) {
  return std::make_unique<CudaConvection>(shared, level, flux);
}

}  // namespace solenoid::cuda
