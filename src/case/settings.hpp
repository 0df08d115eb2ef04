#pragma once
/// \file
/// Keys that are set from outside of a case file.

#include <toml++/toml.h>

#include <string>

namespace solenoid {

/// Sets a key of a document: KEY=VALUE as read_case() takes it. Tables on the way are made, entries of lists are there.
/// The value's source, and that of a key that is new, is "--set KEY=VALUE". \throws InputError that begins with it if
/// it is not such a setting, or leads nowhere.
void apply_setting(const std::string& setting, toml::table& document);

/// ", line 12" or ", --set mesh.refine=5", or nothing for what comes from neither.
std::string at_source(const toml::source_region& source);

}  // namespace solenoid
