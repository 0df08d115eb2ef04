#include "engine/cuda/points/point_program.hpp"

#include <algorithm>
#include <bit>
#include <map>

namespace solenoid::cuda {
namespace {

using Op = Program::Op;

int operands_of(Op op) {
  switch (op) {
    case Op::constant:
    case Op::coordinate: return 0;
    case Op::call_one: return 1;
    case Op::select: return 3;
    default: return 2;
  }
}

/// Memory that is given out again once it is no longer needed: places of arrays, the first gap that is large enough.
class Arena {
 public:
  explicit Arena(int begin) : begin_(begin), end_(begin) {}

  int take(int size) {
    int at = begin_;
    for (const auto& [begin, end] : taken_) {
      if (begin - at >= size) break;
      at = end;
    }
    taken_[at] = at + size;
    end_ = std::max(end_, at + size);
    return at;
  }
  void give_back(int at) { taken_.erase(at); }
  [[nodiscard]] int end() const { return end_; }

 private:
  int begin_;
  int end_;
  std::map<int, int> taken_;  // begin -> end
};

}  // namespace

std::optional<PointProgram> compile(const Program& program, const PointMemory& memory) {
  const auto& all = program.instructions;
  const int count = static_cast<int>(all.size());
  const int every = (1 << memory.dim) - 1;
  // z is 0 in the plane: nothing depends on it.
  const auto axes_of = [&](int i) { return static_cast<std::uint16_t>(all[i].axes & every); };
  PointProgram compiled;
  std::vector<PointOperand> place(all.size());
  std::vector<int> last_use(all.size(), -1);
  std::vector<int> order;  // first those that depend on some directions only
  for (const bool whole : {false, true}) {
    for (int i = 0; i < count; ++i) {
      if (operands_of(all[i].op) > 0 && (axes_of(i) == every) == whole) order.push_back(i);
    }
    if (!whole) compiled.partial = static_cast<int>(order.size());
  }
  for (int i = 0; i < count; ++i) {
    if (all[i].op == Op::constant || (all[i].op == Op::coordinate && axes_of(i) == 0)) {
      place[i] = {static_cast<std::uint16_t>(memory.free_at + compiled.constants.size()), 0};
      compiled.constants.push_back(all[i].op == Op::constant ? all[i].value : 0.0);
    } else if (all[i].op == Op::coordinate) {
      const int a = std::countr_zero(static_cast<unsigned>(axes_of(i)));
      place[i] = {static_cast<std::uint16_t>(memory.coordinates_at + a * memory.size(1)), axes_of(i)};
    }
  }
  for (int turn = 0; turn < std::ssize(order); ++turn) {
    for (const int operand : all[order[turn]].operand) {
      if (operand >= 0) last_use[operand] = turn;
    }
  }
  last_use[count - 1] = count;  // the result

  // A thread that is behind may still read what others no longer need: the two kinds share no memory.
  Arena partial(memory.free_at + static_cast<int>(compiled.constants.size()));
  std::optional<Arena> whole;
  for (int turn = 0; turn < std::ssize(order); ++turn) {
    const Program::Instruction& from = all[order[turn]];
    if ((from.op == Op::call_one || from.op == Op::call_two) && from.function == Program::Function::other) return {};
    if (turn >= compiled.partial && !whole) whole.emplace(partial.end());
    Arena& arena = whole ? *whole : partial;
    // In a place of its own: instructions without a barrier between them overwrite nothing that they read.
    const int at = arena.take(memory.size(axes_of(order[turn])));
    if (arena.end() > memory.most) return {};
    place[order[turn]] = {static_cast<std::uint16_t>(at), axes_of(order[turn])};
    PointInstruction to{
        from.op, from.function, static_cast<std::uint16_t>(operands_of(from.op)), place[order[turn]], {}};
    for (int i = 0; i < to.operands; ++i) to.operand[i] = place[from.operand[i]];
    compiled.instructions.push_back(to);
    for (int i = 0; i < to.operands; ++i) {
      const int operand = from.operand[i];
      const bool in_arena = operands_of(all[operand].op) > 0 && (axes_of(operand) == every) == whole.has_value();
      const bool again = std::find(from.operand.begin(), from.operand.begin() + i, operand) != from.operand.begin() + i;
      if (in_arena && !again && last_use[operand] == turn) arena.give_back(place[operand].at);
    }
  }
  compiled.result = place[count - 1];
  compiled.end = whole ? whole->end() : partial.end();
  if (compiled.end > memory.most) return {};
  return compiled;
}

}  // namespace solenoid::cuda
