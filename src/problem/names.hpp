#pragma once
/// \file
/// The names of choices, in case files, on the command line and in results.

#include <array>
#include <string_view>
#include <utility>

#include "solenoid/choices.hpp"

namespace solenoid {

template <class Choice>
struct Names;

template <>
struct Names<EquationKind> {
  static constexpr std::array<std::pair<std::string_view, EquationKind>, 2> all{
      {{"stokes", EquationKind::stokes}, {"poisson", EquationKind::poisson}}};
};
template <>
struct Names<ViscousForm> {
  static constexpr std::array<std::pair<std::string_view, ViscousForm>, 2> all{
      {{"gradient", ViscousForm::gradient}, {"stress", ViscousForm::stress}}};
};
template <>
struct Names<Method> {
  static constexpr std::array<std::pair<std::string_view, Method>, 3> all{
      {{"gmres", Method::gmres}, {"fmg", Method::fmg}, {"vcycle", Method::vcycle}}};
};
template <>
struct Names<Preset> {
  static constexpr std::array<std::pair<std::string_view, Preset>, 2> all{
      {{"default", Preset::standard}, {"paper", Preset::paper}}};
};
template <>
struct Names<Precision> {
  static constexpr std::array<std::pair<std::string_view, Precision>, 2> all{
      {{"mixed", Precision::mixed}, {"double", Precision::full_double}}};
};
template <>
struct Names<ViscosityPlaces> {
  static constexpr std::array<std::pair<std::string_view, ViscosityPlaces>, 2> all{
      {{"cell", ViscosityPlaces::cell}, {"gauss", ViscosityPlaces::gauss}}};
};
template <>
struct Names<TimeScheme> {
  static constexpr std::array<std::pair<std::string_view, TimeScheme>, 7> all{{{"sbdf1", TimeScheme::sbdf1},
                                                                               {"sbdf2", TimeScheme::sbdf2},
                                                                               {"sbdf3", TimeScheme::sbdf3},
                                                                               {"sbdf4", TimeScheme::sbdf4},
                                                                               {"bdf2/ext3", TimeScheme::bdf2_ext3},
                                                                               {"ars233", TimeScheme::ars233},
                                                                               {"ars443", TimeScheme::ars443}}};
};
template <>
struct Names<DeviceChoice> {
  static constexpr std::array<std::pair<std::string_view, DeviceChoice>, 3> all{
      {{"auto", DeviceChoice::automatic}, {"cpu", DeviceChoice::cpu}, {"cuda", DeviceChoice::cuda}}};
};
template <>
struct Names<PreconditionerSide> {
  static constexpr std::array<std::pair<std::string_view, PreconditionerSide>, 2> all{
      {{"right", PreconditionerSide::right}, {"left", PreconditionerSide::left}}};
};
template <>
struct Names<SmootherKind> {
  static constexpr std::array<std::pair<std::string_view, SmootherKind>, 2> all{
      {{"multiplicative", SmootherKind::multiplicative}, {"additive", SmootherKind::additive}}};
};
template <>
struct Names<ColourOrder> {
  static constexpr std::array<std::pair<std::string_view, ColourOrder>, 2> all{
      {{"diagonal", ColourOrder::diagonal}, {"lexicographic", ColourOrder::lexicographic}}};
};
template <>
struct Names<PatchProblem> {
  static constexpr std::array<std::pair<std::string_view, PatchProblem>, 3> all{
      {{"symmetric", PatchProblem::symmetric}, {"galerkin", PatchProblem::galerkin}, {"fused", PatchProblem::fused}}};
};
template <>
struct Names<TransportChoice> {
  static constexpr std::array<std::pair<std::string_view, TransportChoice>, 4> all{
      {{"auto", TransportChoice::automatic},
       {"peer", TransportChoice::peer},
       {"nccl", TransportChoice::nccl},
       {"staged", TransportChoice::staged}}};
};
template <>
struct Names<LocalSolverKind> {
  static constexpr std::array<std::pair<std::string_view, LocalSolverKind>, 4> all{
      {{"direct", LocalSolverKind::direct},
       {"chebyshev", LocalSolverKind::chebyshev},
       {"cg", LocalSolverKind::cg},
       {"dense", LocalSolverKind::dense}}};
};
template <>
struct Names<SideKind> {
  static constexpr std::array<std::pair<std::string_view, SideKind>, 4> all{{{"velocity", SideKind::velocity},
                                                                             {"slip", SideKind::slip},
                                                                             {"outflow", SideKind::outflow},
                                                                             {"periodic", SideKind::periodic}}};
};
template <>
struct Names<FlowField> {
  static constexpr std::array<std::pair<std::string_view, FlowField>, 8> all{
      {{"vorticity", FlowField::vorticity},
       {"q", FlowField::q},
       {"dissipation", FlowField::dissipation},
       {"strain_rate", FlowField::strain_rate},
       {"strain_rate_invariant", FlowField::strain_rate_invariant},
       {"stress", FlowField::stress},
       {"viscosity", FlowField::viscosity},
       {"mass", FlowField::mass}}};
};

template <class Choice>
constexpr std::string_view name_of(Choice choice) {
  for (const auto& [name, value] : Names<Choice>::all) {
    if (value == choice) return name;
  }
  return {};
}

/// A side's kind as the keys of the case file name it: what Poisson's equation prescribes is a value.
constexpr std::string_view name_of(SideKind kind, EquationKind equation) {
  return kind == SideKind::velocity && equation == EquationKind::poisson ? "value" : name_of(kind);
}

/// Sides of the bounding box in the order of Boundary::sides.
inline constexpr std::array<std::string_view, 6> side_names{"xmin", "xmax", "ymin", "ymax", "zmin", "zmax"};

}  // namespace solenoid
