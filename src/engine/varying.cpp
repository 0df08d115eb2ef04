#include "engine/varying.hpp"

#include <algorithm>

#include "element/matrices.hpp"

namespace solenoid {

template <class T>
VaryingCoefficients<T>::VaryingCoefficients(const Level& level)
    : viscosity_(level.grid.layout().storage(), T(1)), reaction_(level.grid.layout().storage(), T(0)) {
  const auto rounded = [](double value) { return static_cast<T>(value); };
  const CellCoefficients& coefficients = *level.coefficients.by_cell;
  std::transform(coefficients.viscosity.begin(), coefficients.viscosity.end(), viscosity_.begin(), rounded);
  std::transform(coefficients.reaction.begin(), coefficients.reaction.end(), reaction_.begin(), rounded);
  data_.stress = level.equation.form == ViscousForm::stress;
  const CellMatrices matrices(level.equation.order);
  for (int j = 0; j < level.equation.n(); ++j) {
    for (int i = 0; i < level.equation.n(); ++i) data_.volume[j][i] = rounded(matrices.volume(j, i));
  }
}

template <class T>
VaryingData<T> VaryingCoefficients<T>::data() const {
  VaryingData<T> data = data_;
  data.viscosity = viscosity_.data();
  data.reaction = reaction_.data();
  return data;
}

template class VaryingCoefficients<float>;
template class VaryingCoefficients<double>;

}  // namespace solenoid
