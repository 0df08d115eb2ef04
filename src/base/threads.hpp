#pragma once
/// \file
/// Threads of this machine.

namespace solenoid {

/// Threads that the machine runs at a time, at least 1.
int cores();

/// Threads of a CPU engine, asked for as an option: 0 for all cores. Threads wait for each other in every step, so that
/// a solve with far more than the machine runs does not end. \throws InputError if asked is negative or more than eight
/// for each core
int threads_for(int asked);

}  // namespace solenoid
