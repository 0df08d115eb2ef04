#include "engine/sheared.hpp"

#include <algorithm>
#include <cmath>

namespace solenoid {

template <class T>
ShearedData<T> make_sheared_data(const Level& level) {
  const Equation& equation = level.equation;
  const AffineMap& map = *level.grid.metric().map();
  const Point h = level.grid.metric().uniform_width();
  ShearedData<T> data{};
  const CellCoefficients* const by_cell = level.coefficients.by_cell.get();
  const double reaction = by_cell == nullptr ? level.coefficients.reaction : 1.0;
  for (int a = 0; a < equation.dim; ++a) {
    for (int b = 0; b < equation.dim; ++b) {
      const double g = map.metric()[a][b];
      data.metric[a][b] = static_cast<T>(g);
      data.flux[a][b] =
          static_cast<T>(level.coefficients.viscosity * map.inverse_metric()[a][b] / (map.jacobian() * h[a] * h[b]));
      data.mass[a][b] = static_cast<T>(reaction * g / map.jacobian());
      data.turned[a][b] = static_cast<T>(level.coefficients.viscosity / (map.jacobian() * h[a] * h[b]));
      data.inverse[a][b] = static_cast<T>(map.inverse_metric()[a][b]);
    }
  }
  data.stress = equation.form == ViscousForm::stress;
  data.has_mass = by_cell == nullptr ? reaction != 0.0
                                     : std::any_of(by_cell->reaction.begin(), by_cell->reaction.end(),
                                                   [](double alpha) { return alpha != 0.0; });
  for (int j = 0; j < equation.n(); ++j) data.hat[j] = static_cast<T>(0.5 / std::sqrt((2.0 * j + 1) * (2.0 * j + 3)));
  for (int j = 0; j <= equation.n(); ++j) data.root[j] = static_cast<T>(std::sqrt(2.0 * j + 1));
  return data;
}

template ShearedData<float> make_sheared_data<float>(const Level&);
template ShearedData<double> make_sheared_data<double>(const Level&);

}  // namespace solenoid
