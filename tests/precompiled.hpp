// What most tests include beside cmake/precompiled.hpp.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
