#!/usr/bin/env python3
"""Writes a Qwen3.5 model of a real shape with random weights as GGUF, for programs that are measured
on the same bytes. Needs Python alone.

    write_gguf.py SIZE TYPE HEAD_TYPE OUT      sizes: tiny 0.8b 2b 4b 9b; types: q4_0 q8_0 q4_k q6_k

Matrices repeat a pool of random blocks; scales keep activations of ordinary size. There is no
vocabulary: prompts are ids. OUT appears when it is complete.
"""
import os
import random
import struct
import sys

ALIGNMENT = 32
POOL_BLOCKS = 4096

# layers, dim, ffn_dim, heads, kv_heads, value_heads, vocab, tied
SIZES = {
    "tiny": (4, 256, 512, 2, 1, 4, 1024, True),
    "0.8b": (24, 1024, 3584, 8, 2, 16, 248320, True),
    "2b": (24, 2048, 6144, 8, 2, 16, 248320, True),
    "4b": (32, 2560, 9216, 16, 4, 32, 248320, True),
    "9b": (32, 4096, 12288, 16, 4, 32, 248320, False),
}
HEAD_DIM, ROTARY_DIM, DELTA_DIM, CONV = 256, 64, 128, 4

rng = random.Random(1)


def half(value):
    return struct.pack("<e", value * rng.uniform(0.8, 1.2))


# One random block. `unit` is the standard deviation that its weights should have.
def block_q4_0(unit):
    return half(unit / 4.6) + rng.randbytes(16)


def block_q8_0(unit):
    return half(unit / 74) + rng.randbytes(32)


def block_q4_k(unit):  # d, dmin (so that the mean is zero), 6-bit scales and minima, nibbles
    d = unit / 258
    return half(d) + half(7.5 * d) + rng.randbytes(12 + 128)


def block_q6_k(unit):  # low nibbles, high bits, scales of -16 .. 15, d
    scales = bytes(rng.randrange(-16, 16) & 255 for _ in range(16))
    return rng.randbytes(128 + 64) + scales + half(unit / 170)


# name: GGUF's number, weights and bytes of a block, how one is drawn, general.file_type
TYPES = {
    "q4_0": (2, 32, 18, block_q4_0, 2),
    "q8_0": (8, 32, 34, block_q8_0, 7),
    "q4_k": (12, 256, 144, block_q4_k, 15),
    "q6_k": (14, 256, 210, block_q6_k, 18),
}
F32 = 0


def tensors_of(size, kind, head_kind):
    """(name, dims with the fastest first, type or a range of float32 values)"""
    layers, dim, ffn, heads, kv_heads, value_heads, vocab, tied = SIZES[size]
    key_heads = min(16, value_heads)
    mixed = DELTA_DIM * (2 * key_heads + value_heads)
    near_one, small = (0.8, 1.2), (-0.5, 0.5)
    yield "token_embd.weight", (dim, vocab), head_kind if tied else kind
    yield "output_norm.weight", (dim,), near_one
    if not tied:
        yield "output.weight", (dim, vocab), head_kind
    for i in range(layers):
        def named(rest):
            return f"blk.{i}.{rest}"
        yield named("attn_norm.weight"), (dim,), near_one
        yield named("post_attention_norm.weight"), (dim,), near_one
        if i % 4 == 3:
            yield named("attn_q.weight"), (dim, 2 * heads * HEAD_DIM), kind
            yield named("attn_k.weight"), (dim, kv_heads * HEAD_DIM), kind
            yield named("attn_v.weight"), (dim, kv_heads * HEAD_DIM), kind
            yield named("attn_output.weight"), (heads * HEAD_DIM, dim), kind
            yield named("attn_q_norm.weight"), (HEAD_DIM,), near_one
            yield named("attn_k_norm.weight"), (HEAD_DIM,), near_one
        else:
            yield named("attn_qkv.weight"), (dim, mixed), kind
            yield named("attn_gate.weight"), (dim, DELTA_DIM * value_heads), kind
            yield named("ssm_conv1d.weight"), (CONV, mixed), small
            yield named("ssm_dt.bias"), (value_heads,), (-4, 0)
            yield named("ssm_a"), (value_heads,), (-8, -0.5)
            yield named("ssm_beta.weight"), (dim, value_heads), kind
            yield named("ssm_alpha.weight"), (dim, value_heads), kind
            yield named("ssm_norm.weight"), (DELTA_DIM,), near_one
            yield named("ssm_out.weight"), (DELTA_DIM * value_heads, dim), kind
        yield named("ffn_gate.weight"), (dim, ffn), kind
        yield named("ffn_up.weight"), (dim, ffn), kind
        yield named("ffn_down.weight"), (ffn, dim), kind


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def keys_of(size, kind):
    layers, dim, ffn, heads, kv_heads, value_heads, vocab, _ = SIZES[size]
    a = "qwen35."
    numbers = {
        "general.file_type": TYPES[kind][4],
        "general.alignment": ALIGNMENT,
        a + "block_count": layers,
        a + "context_length": 262144,
        a + "embedding_length": dim,
        a + "feed_forward_length": ffn,
        a + "attention.head_count": heads,
        a + "attention.head_count_kv": kv_heads,
        a + "attention.key_length": HEAD_DIM,
        a + "attention.value_length": HEAD_DIM,
        a + "rope.dimension_count": ROTARY_DIM,
        a + "ssm.conv_kernel": CONV,
        a + "ssm.inner_size": DELTA_DIM * value_heads,
        a + "ssm.state_size": DELTA_DIM,
        a + "ssm.time_step_rank": value_heads,
        a + "ssm.group_count": min(16, value_heads),
        a + "full_attention_interval": 4,
        a + "vocab_size": vocab,
    }
    texts = {
        "general.architecture": "qwen35",
        "general.name": f"random-{size}",
        "tokenizer.ggml.model": "no_vocab",
    }
    floats = {a + "attention.layer_norm_rms_epsilon": 1e-6, a + "rope.freq_base": 1e7}
    sections = (11, 11, 10, 0)
    keys = [text(k) + struct.pack("<I", 8) + text(v) for k, v in texts.items()]
    keys += [text(k) + struct.pack("<II", 4, v) for k, v in numbers.items()]
    keys += [text(k) + struct.pack("<If", 6, v) for k, v in floats.items()]
    keys.append(text(a + "rope.dimension_sections") + struct.pack("<IIQ4i", 9, 5, 4, *sections))
    return keys


def count(dims):
    product = 1
    for n in dims:
        product *= n
    return product


def bytes_of(dims, kind):
    if kind not in TYPES:
        return 4 * count(dims)
    _, weights, size, _, _ = TYPES[kind]
    assert dims[0] % weights == 0, (dims, kind)
    return count(dims) // weights * size


def padding(size):
    return bytes(-size % ALIGNMENT)


def write_matrix(out, dims, kind, pools):
    """Starts somewhere in a pool that is made for this type and number of columns."""
    if (kind, dims[0]) not in pools:
        draw = TYPES[kind][3]
        unit = dims[0] ** -0.5
        pools[kind, dims[0]] = b"".join(draw(unit) for _ in range(POOL_BLOCKS))
    pool, block = pools[kind, dims[0]], TYPES[kind][2]
    left, start = bytes_of(dims, kind), rng.randrange(POOL_BLOCKS) * block
    while left > 0:
        piece = pool[start:start + left]
        out.write(piece)
        left -= len(piece)
        start = 0


def write_values(out, dims, value_range):
    values = [rng.uniform(*value_range) for _ in range(count(dims))]
    out.write(struct.pack(f"<{len(values)}f", *values))


def write_model(size, kind, head_kind, path):
    tensors = list(tensors_of(size, kind, head_kind))
    keys = keys_of(size, kind)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys)
    offset = 0
    for name, dims, of in tensors:
        number = TYPES[of][0] if of in TYPES else F32
        header += text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        header += struct.pack("<IQ", number, offset)
        size_here = bytes_of(dims, of)
        offset += size_here + len(padding(size_here))
    pools = {}
    with open(path + ".part", "wb", buffering=1 << 20) as out:
        out.write(header + padding(len(header)))
        for name, dims, of in tensors:
            if of in TYPES:
                write_matrix(out, dims, of, pools)
            else:
                write_values(out, dims, of)
            out.write(padding(bytes_of(dims, of)))
    os.replace(path + ".part", path)


def main(arguments):
    if len(arguments) != 4 or arguments[0] not in SIZES or not set(arguments[1:3]) <= set(TYPES):
        sys.exit(__doc__)
    write_model(*arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
