#pragma once
/// \file
/// All keys of the case file: one table from which the reader, its suggestions and the reference are made.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "case/value.hpp"
#include "solenoid/case.hpp"

namespace solenoid {

/// The top level of a case file.
std::span<const Key<Case>> case_keys();
/// The table [solver].
std::span<const Key<SolverOptions>> solver_option_keys();
/// The table [time] but for its end.
std::span<const Key<March>> time_option_keys();

/// A table of the case file, for people.
struct Section {
  std::string_view name;  ///< "mesh"; "mesh.holes" for the tables that are entries of a list
  std::string_view meaning;
  std::vector<KeyInfo> keys;
};

/// Every table and key, in the order in which a reference lists them.
const std::vector<Section>& case_sections();

/// The key that sets an entry of a problem or its options (InvalidEntry): "physics.force[0]" for "force[0]".
std::string key_path(const std::string& entry);
/// "mesh.holes[0]" as people read it: "[mesh] holes[0]".
std::string key_label(const std::string& path);

}  // namespace solenoid
