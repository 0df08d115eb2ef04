#include "solution/place_tables.hpp"

#include <algorithm>

#include "element/basis.hpp"

namespace solenoid {

std::vector<double> make_tables(const PlaceTables& layout) {
  const int order = layout.n - 1;
  const Quadrature rule = gauss(layout.points);
  std::vector<double> tables(layout.size(), 0.0);
  for (int place = 0; place < layout.beyond(); ++place) {
    const bool is_end = place >= layout.points;
    const double x = is_end ? place - layout.points : rule.points[place];
    tables[place] = x;
    tables[layout.weight_at() + place] = is_end ? 1.0 : rule.weights[place];
    for (const bool slope : {false, true}) {
      std::ranges::copy(continuous(order, x, slope ? 1 : 0), &tables[layout.function_at(place, true, slope)]);
      std::ranges::copy(legendre(order, x, slope ? 1 : 0), &tables[layout.function_at(place, false, slope)]);
    }
  }
  for (const bool is_continuous : {false, true})
    tables[layout.function_at(layout.beyond(), is_continuous, false)] = 1.0;
  return tables;
}

}  // namespace solenoid
