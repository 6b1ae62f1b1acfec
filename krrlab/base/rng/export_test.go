package rng

// Philox4x32 is philox with words that are not packed.
func Philox4x32(ctr [4]uint32, key [2]uint32) [4]uint32 {
	a, b := philox(uint64(ctr[0])|uint64(ctr[1])<<32, uint64(ctr[2])|uint64(ctr[3])<<32,
		uint64(key[0])|uint64(key[1])<<32)
	return [4]uint32{uint32(a), uint32(a >> 32), uint32(b), uint32(b >> 32)}
}
