/** A relay that a reorganization took off the chain is resent while that can succeed, and not for ever. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import type { Chain } from '../../../../src/providers/chain/port.ts'
import { relayPayment } from '../../../../src/rails/wallets/relays/relay-payment.ts'
import type { TransferDependencies } from '../../../../src/rails/wallets/transfers/send-transfer.ts'
import { verifySettled } from '../../../../src/server/jobs/verify-settled.ts'
import { onBothEngines } from '../../../engines.ts'
import { signAuthorization } from '../../../tools/transfers/signed-payments.ts'
import { openFundedAccount, outsideAddress, reserveOrder, sendingDependencies } from '../scene.ts'

const running = new AbortController().signal
const MINUTE_MS = 60_000

onBothEngines('a relay that the chain lost', (database) => {
  const payer = privateKeyToAccount(generatePrivateKey())
  let chain: Chain
  let sending: TransferDependencies
  /** Broadcasts of the verification. */
  let sent = 0
  beforeAll(async () => {
    chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
    await chain.mint([{ token: 'USDC', to: payer.address, units: 1_000n }])
  })

  /** Relays a payment that is valid for a time. @returns the number of those missing, some minutes later. */
  const submitRelay = async (validMs: number) => {
    const at = systemClock()
    const validBefore = BigInt(Math.floor((at.getTime() + validMs) / 1_000))
    const signed = await signAuthorization(chain, payer, { to: outsideAddress, value: 9n, validBefore })
    const { accountId } = await openFundedAccount(sending)
    const { decisionId } = await reserveOrder(sending, { accountId, units: 9n })
    const payment = {
      kind: 'authorization',
      token: 'USDC',
      units: 9n,
      payer: payer.address,
      destination: outsideAddress,
      nonce: signed.nonce,
      validAfter: 0n,
      validBefore,
      signature: signed.signature,
    } as const
    expect(await relayPayment(sending, { accountId, decisionId, payment, at })).toMatchObject({
      status: 'confirmed',
    })
    const forgetful: Chain = {
      ...chain,
      authorizationState: async () => ({ status: 'unused' }),
      signer: {
        ...chain.signer,
        writeContract: async () => {
          sent += 1
          throw new Error('the payer has no money left')
        },
      },
    }
    const identity = await chain.identity()
    return async (minutes: number) => {
      sent = 0
      const clock = () => new Date(systemClock().getTime() + minutes * MINUTE_MS)
      return verifySettled({ ...sending, chain: forgetful, clock }, { since: at, identity }, running)
    }
  }

  it('is resent until its signature has expired', async () => {
    const missingAfter = await submitRelay(3 * MINUTE_MS)
    expect([await missingAfter(1), sent]).toEqual([1, 1])
    expect([await missingAfter(4), sent]).toEqual([0, 0])
  })

  it('is given up after minutes, although its signature is valid for years', async () => {
    const missingAfter = await submitRelay(10 * 365 * 24 * 60 * MINUTE_MS)
    expect([await missingAfter(7), sent]).toEqual([1, 1])
    expect([await missingAfter(9), sent]).toEqual([0, 0])
  })
})
