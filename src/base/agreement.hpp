#pragma once
/// \file
/// Errors of one rank that all ranks throw.

#include <exception>
#include <string>

#include "solenoid/communicator.hpp"
#include "solenoid/error.hpp"
#include "solenoid/interrupt.hpp"

namespace solenoid {

/// Calls work(), which may throw on some ranks and must not be collective. Then either no rank throws or all do: those
/// without an error of their own the first one of the others, as an Interrupted, InputError, ResourceError or Error.
/// `ranks` may be nullptr.
template <class Work>
void in_agreement(const Communicator* ranks, const Work& work) {
  if (ranks == nullptr) return work();
  std::exception_ptr mine;
  std::string text;  // kind and message
  try {
    work();
  } catch (const Interrupted& error) {
    mine = std::current_exception();
    text = std::string("x") + error.what();
  } catch (const InputError& error) {
    mine = std::current_exception();
    text = std::string("i") + error.what();
  } catch (const ResourceError& error) {
    mine = std::current_exception();
    text = std::string("r") + error.what();
  } catch (const std::exception& error) {
    mine = std::current_exception();
    text = std::string("e") + error.what();
  }
  if (!ranks->any(mine != nullptr)) return;
  const auto texts = ranks->texts(text);
  if (mine != nullptr) std::rethrow_exception(mine);
  for (const std::string& one : texts) {
    if (one.empty()) continue;
    if (one[0] == 'x') throw Interrupted(one.substr(1));
    if (one[0] == 'i') throw InputError(one.substr(1));
    if (one[0] == 'r') throw ResourceError(one.substr(1));
    throw Error(one.substr(1));
  }
}

}  // namespace solenoid
