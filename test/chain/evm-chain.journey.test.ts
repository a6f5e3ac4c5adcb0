import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { startAnvilChain } from '../../src/chain/node/anvil.ts'
import { silentLog } from '../../src/core/base/log.ts'
import type { Wallet } from '../../src/providers/chain/port.ts'
import { hasAnvil } from '../rails/selling/x402/world.ts'

it.skipIf(!hasAnvil())('covers no card holds at a hand-over on a chain without cards', async () => {
  const name = 'arbitrum-sepolia'
  const chain = await startAnvilChain({
    name,
    log: silentLog,
    binary: process.env.ANVIL_BIN,
    hasCards: false,
  })
  try {
    const { address } = privateKeyToAccount(generatePrivateKey())
    const wallet: Wallet = {
      accountId: 'acct_1',
      origin: { kind: 'gateway' },
      owner: { kind: 'eoa', address },
      cardCover: 900_000_000n,
    }
    await chain.mint([{ token: 'USDC', to: await chain.walletAddress(wallet), units: 1_000_000n }])
    expect(await chain.readAllowance(wallet, 'cards')).toMatchObject({ onceMicros: 0n })
    const operation = {
      wallet,
      id: 'tx_1',
      call: { kind: 'transfer', token: 'USDC', to: address, units: 1_000_000n },
      validUntil: new Date(Date.now() + 60_000),
      authorization: { kind: 'allowance', agentId: 'key_1' },
    } as const
    expect(await chain.submit(operation)).toMatchObject({ status: 'submitted' })
    expect(await chain.awaitExecution(operation, 5_000)).toMatchObject({
      status: 'executed',
      succeeded: true,
    })
    expect(await chain.readAllowance(wallet, 'cards')).toMatchObject({ onceMicros: 0n })
  } finally {
    await chain.close()
  }
})
