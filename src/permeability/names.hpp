#pragma once
/// \file
/// The names of choices of permeabilities, in case files and results.

#include "problem/names.hpp"
#include "solenoid/permeability.hpp"

namespace solenoid {

template <>
struct Names<SidesAcross> {
  static constexpr std::array<std::pair<std::string_view, SidesAcross>, 2> all{
      {{"wall", SidesAcross::wall}, {"periodic", SidesAcross::periodic}}};
};
template <>
struct Names<Drive> {
  static constexpr std::array<std::pair<std::string_view, Drive>, 2> all{
      {{"force", Drive::force}, {"pressure", Drive::pressure}}};
};
template <>
struct Names<ErrorCheck> {
  static constexpr std::array<std::pair<std::string_view, ErrorCheck>, 3> all{
      {{"none", ErrorCheck::none}, {"order", ErrorCheck::order}, {"refinement", ErrorCheck::refinement}}};
};

}  // namespace solenoid
