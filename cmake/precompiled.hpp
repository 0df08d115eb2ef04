// What most files of the project include, parsed once for each target that has many of them. Files include what they
// use all the same: unity builds (pip, quickstart) go without this one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
