import { describe, expect, it } from 'vitest'
import { createWallets } from '../../../src/chain/accounts/wallets.ts'
import { canonicalContracts, mapAddresses, sandboxTokensOn } from '../../../src/chain/rpc/networks.ts'
import { chainFacts, chainNames } from '../../../src/core/money/chains.ts'
import type { TokenAddresses, WalletOwner } from '../../../src/providers/chain/port.ts'

const owners: readonly WalletOwner[] = [
  { kind: 'gateway' },
  { kind: 'eoa', address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8' },
  { kind: 'passkey', x: `0x${'1'.repeat(64)}`, y: `0x${'2'.repeat(64)}` },
]

function addressOn(tokens: TokenAddresses, origin: WalletOwner): string {
  const wallets = createWallets({
    contracts: canonicalContracts,
    tokens,
    proxyCode: '0x6000',
    firstOwner: () => '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f',
    starterMicros: 0n,
    cardsMicros: 0n,
  })
  return wallets.findSafe({ accountId: 'acct_01h455vb4pex5vsknk084sn02q', origin }).address
}

describe('the address of a wallet', () => {
  it.each(owners)('is the same on every chain for the owner $kind', (origin) => {
    const tokens = chainNames.flatMap((name) => [
      mapAddresses(chainFacts(name).tokens),
      mapAddresses(sandboxTokensOn(name)),
    ])
    expect(new Set(tokens.map((on) => addressOn(on, origin))).size).toBe(1)
  })

  // Money sent to an address that the gateway no longer computes is out of its reach.
  it('does not change from version to version', () => {
    const tokens = mapAddresses(chainFacts('base').tokens)
    expect(owners.map((origin) => addressOn(tokens, origin))).toMatchInlineSnapshot(`
      [
        "0xb2c41aAe1aF04A7885Ed68628a07BADed90d8A21",
        "0x92bBa98abA2f3B303f5527FF30997039B653C67c",
        "0xDAD5930eB794db272a3C280EA22788c8f0B26d4D",
      ]
    `)
  })
})
