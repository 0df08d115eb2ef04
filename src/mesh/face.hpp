#pragma once
/// \file
/// Kinds of faces and what they mean for the discrete operator.

#include <cstdint>

namespace solenoid {

/// What a face means for the discrete operator.
enum class Face : std::uint8_t {
  interior,  ///< a cell behind it (periodic faces too)
  velocity,  ///< velocity prescribed: normal unknown fixed, penalty on the tangential ones
  slip,      ///< normal unknown fixed, no tangential terms
  outflow,   ///< nothing imposed: normal unknown free, no tangential terms
};

/// Weight s of the face form E(u, v) = gamma u v - 1/2 du/dn v - 1/2 u dv/dn of the tangential interior-penalty terms:
/// 1 on interior faces (the cell's own share), 2 where velocity is prescribed, 0 on slip and outflow sides.
constexpr int face_weight(Face face) { return face == Face::interior ? 1 : face == Face::velocity ? 2 : 0; }
/// True where the normal velocity is prescribed, so that its unknown is not solved for.
constexpr bool normal_fixed(Face face) { return face == Face::velocity || face == Face::slip; }

}  // namespace solenoid
