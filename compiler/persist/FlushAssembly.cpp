//===- FlushAssembly.cpp - Cache flushes in inline assembly ---------------===//
#include "persist/FlushAssembly.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;

namespace spillway {

namespace {

class Parser {
public:
  explicit Parser(const CallBase &Call)
      : Call(Call), Assembly(*cast<InlineAsm>(Call.getCalledOperand())) {}

  bool parse();

  SmallVector<FlushStep, 2> Steps;

private:
  bool parseStatement(StringRef Statement);
  bool parseInstruction(StringRef Mnemonic, StringRef Operand);
  Value *lineOf(StringRef Operand) const;
  Value *argumentOf(unsigned Operand, bool InMemory) const;

  const CallBase &Call;
  const InlineAsm &Assembly;
  bool HasPrefix = false; // the byte 0x66 came before
};

} // namespace

// The argument for operand number Operand of the text, if it is what the text
// uses it as: an object in memory, or an address in a register; else null.
// Since the assembly has no results, there is one argument for each operand.
Value *Parser::argumentOf(unsigned Operand, bool InMemory) const {
  if (Operand >= Call.arg_size())
    return nullptr;
  const InlineAsm::ConstraintInfo C = Assembly.ParseConstraints()[Operand];
  if (C.isIndirect != InMemory || (InMemory && is_contained(C.Codes, "r")))
    return nullptr;
  Value *V = Call.getArgOperand(Operand);
  Type *T = V->getType();
  bool IsAddress =
      T->isPointerTy() ? T->getPointerAddressSpace() == 0 : T->isIntegerTy(64);
  return IsAddress ? V : nullptr;
}

// The address of the line that an operand of the text names: $0, ${0:a}, ($0)
// or [$0], with the size before it in Intel's dialect. Null if it is none of
// these.
Value *Parser::lineOf(StringRef Operand) const {
  std::string Text;
  copy_if(Operand, std::back_inserter(Text),
          [](char C) { return C != ' ' && C != '\t'; });
  StringRef Rest = Text;
  Rest.consume_front("byteptr");
  bool InRegister = (Rest.starts_with("(") && Rest.ends_with(")")) ||
                    (Rest.starts_with("[") && Rest.ends_with("]"));
  if (InRegister)
    Rest = Rest.drop_front().drop_back();
  if (!Rest.consume_front("$"))
    return nullptr;
  if (Rest.consume_front("{") && !Rest.consume_back("}"))
    return nullptr;
  // Modifiers: as an address; the register's 64-bit name.
  InRegister |= Rest.consume_back(":a");
  if (InRegister)
    Rest.consume_back(":q");
  unsigned Number;
  if (Rest.getAsInteger(10, Number))
    return nullptr;
  return argumentOf(Number, /*InMemory=*/!InRegister);
}

bool Parser::parseInstruction(StringRef Mnemonic, StringRef Operand) {
  bool Prefixed = std::exchange(HasPrefix, false);
  if (Mnemonic == "sfence" || Mnemonic == "mfence") {
    Steps.push_back(
        {Mnemonic == "sfence" ? FlushKind::Fence : FlushKind::FullFence,
         nullptr});
    return !Prefixed && Operand.empty();
  }
  bool Known = Prefixed ? Mnemonic == "clflush" || Mnemonic == "xsaveopt"
                        : Mnemonic == "clflush" || Mnemonic == "clflushopt" ||
                              Mnemonic == "clwb";
  Value *Line = Known ? lineOf(Operand) : nullptr;
  FlushKind Kind = FlushKind::Clwb;
  if (Mnemonic == "clflushopt" || (Mnemonic == "clflush" && Prefixed))
    Kind = FlushKind::Clflushopt;
  else if (Mnemonic == "clflush")
    Kind = FlushKind::Clflush;
  Steps.push_back({Kind, Line});
  return Line;
}

bool Parser::parseStatement(StringRef Statement) {
  // Directives that say how to read the text.
  if (Statement.empty() || Statement.starts_with(".intel_syntax") ||
      Statement.starts_with(".att_syntax"))
    return true;
  size_t End = std::min(Statement.find_first_of(" \t"), Statement.size());
  StringRef Mnemonic = Statement.take_front(End);
  StringRef Operand = Statement.drop_front(End).trim();
  if (Mnemonic != ".byte")
    return parseInstruction(Mnemonic, Operand);
  unsigned Byte;
  if (HasPrefix || Operand.getAsInteger(0, Byte) || Byte != 0x66)
    return false;
  HasPrefix = true;
  return true;
}

static std::string textOf(const CallBase &Call) {
  return StringRef(cast<InlineAsm>(Call.getCalledOperand())->getAsmString())
      .lower();
}

bool Parser::parse() {
  if (!isa<CallInst>(Call) || !Call.getType()->isVoidTy())
    return false;
  std::string Text = textOf(Call);
  SmallVector<StringRef, 4> Lines, Statements;
  StringRef(Text).split(Lines, '\n');
  for (StringRef Line : Lines) {
    Statements.clear();
    Line.split('#').first.split(Statements, ';');
    for (StringRef Statement : Statements)
      if (!parseStatement(Statement.trim()))
        return false;
  }
  return !HasPrefix;
}

SmallVector<FlushStep, 2> parseFlushes(const CallBase &Call) {
  Parser P(Call);
  if (!P.parse())
    return {};
  return std::move(P.Steps);
}

static bool hasWord(const CallBase &Call,
                    function_ref<bool(StringRef)> IsWanted) {
  std::string Text = textOf(Call);
  StringRef Rest = Text;
  auto InWord = [](char C) { return isAlnum(C) || C == '.' || C == '_'; };
  while (!(Rest = Rest.drop_until(InWord)).empty()) {
    if (IsWanted(Rest.take_while(InWord)))
      return true;
    Rest = Rest.drop_while(InWord);
  }
  return false;
}

// Whether the word is a directive for data, which may encode instructions.
static bool isData(StringRef Word) {
  return StringSwitch<bool>(Word)
      .Cases(".byte", ".2byte", ".4byte", ".8byte", ".word", true)
      .Cases(".short", ".value", ".hword", ".long", ".int", true)
      .Cases(".quad", ".ascii", ".string", true)
      .Default(false);
}

bool mayFlush(const CallBase &Call) {
  return hasWord(Call, [](StringRef Word) {
    return isData(Word) || Word == "clwb" || Word.starts_with("clflush");
  });
}

bool mayOrderFlushes(const CallBase &Call) {
  return hasWord(Call, [](StringRef Word) {
    return isData(Word) || Word.starts_with("xchg") ||
           StringSwitch<bool>(Word)
               .Cases("sfence", "mfence", "clflush", "lock", true)
               .Cases("cpuid", "serialize", "xbegin", true)
               .Default(false);
  });
}

} // namespace spillway
