#include "fuzz/fuzz.h"

#include <string.h>

#include "wire/imm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	uint64_t word = 0;
	struct fr_imm imm;

	memcpy(&word, data, bytes < sizeof(word) ? bytes : sizeof(word));
	fuzz_check(fr_imm_unpack(word, 8, &imm));
	fuzz_check(fr_imm_pack(&imm, 8) == word);
	if (fr_imm_unpack(word, 4, &imm)) {
		fuzz_check(fr_imm_pack(&imm, 4) == (uint32_t)word);
	} else {
		fuzz_check(imm.nseg > FR_IMM_MAX_NSEG);
	}
	return 0;
}

size_t fuzz_good(uint8_t *buf)
{
	struct fr_imm imm = {.comm = 77, .seq = 5, .nseg = 4, .len = 100};
	uint64_t word = fr_imm_pack(&imm, 8);

	memcpy(buf, &word, sizeof(word));
	return sizeof(word);
}
