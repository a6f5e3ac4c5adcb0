/** Transfer rows written in the commit that holds their money, in single calls and in batches. */
import { beforeAll, describe, expect, it } from 'vitest'
import { releaseSpend } from '../../../../src/books/spending/release.ts'
import { reserveSpend, reserveSpends } from '../../../../src/books/spending/reserve.ts'
import type { SpendRequest } from '../../../../src/books/spending/spend-request.ts'
import { createSimulatedChain } from '../../../../src/chain/simulated/simulated.ts'
import { systemClock } from '../../../../src/core/base/clock.ts'
import { newId } from '../../../../src/core/base/ids.ts'
import { silentLog } from '../../../../src/core/base/log.ts'
import { insertIntent } from '../../../../src/rails/wallets/signing/intent-store.ts'
import { findTransferOfDecision, walletWritten } from '../../../../src/rails/wallets/store.ts'
import {
  planTransfer,
  sendWritten,
  type TransferAuthorization,
  type TransferDependencies,
} from '../../../../src/rails/wallets/transfers/send-transfer.ts'
import { settlePending } from '../../../../src/server/jobs/settle-pending.ts'
import { onBothEngines } from '../../../engines.ts'
import {
  describeTransferSpend,
  openFundedAccount,
  outsideAddress,
  sendingDependencies,
  usdcBalance,
} from '../scene.ts'

const FUNDS = 1_000_000_000n
const later = () => new Date(systemClock().getTime() + 60_000)
const running = new AbortController().signal
const byGateway: TransferAuthorization = { signer: 'sandbox', authorization: { kind: 'gateway' } }

onBothEngines('a transfer row written with the hold', (database) => {
  let sending: TransferDependencies
  beforeAll(async () => {
    const chain = await createSimulatedChain({ clock: systemClock, log: silentLog })
    sending = sendingDependencies(database(), chain)
  })

  const buildRequest = (
    accountId: string,
    units: bigint,
    authorizedBy = byGateway,
  ): SpendRequest & { readonly transfer: NonNullable<SpendRequest['transfer']> } => {
    const at = systemClock()
    const decisionId = newId('dec', at)
    const order = { accountId, authorizedBy, token: 'USDC', units, destination: outsideAddress, at } as const
    const place = sending.chain.name
    return {
      ...describeTransferSpend({ accountId, units, destination: outsideAddress, decisionId, place, at }),
      idempotency: { principal: accountId, key: decisionId, fingerprint: 'same' },
      transfer: planTransfer(sending, order)(decisionId),
    }
  }

  const requestIntent = async (accountId: string): Promise<TransferAuthorization> => {
    const at = systemClock()
    const id = newId('int', at)
    const expiresAt = new Date(at.getTime() + 60_000)
    const transfer = {
      token: 'USDC',
      units: 5n,
      destination: outsideAddress,
      chain: sending.chain.name,
    } as const
    const operationId = newId('tx', at)
    await insertIntent(database(), {
      id,
      accountId,
      agentId: null,
      message: id,
      hash: `0x${Buffer.from(id).toString('hex')}`,
      operationHash: '0x00',
      operationId,
      transfer: { ...transfer, destination: '0x000000000000000000000000000000000000dead' },
      allowance: null,
      payoutId: null,
      createdAt: at,
      expiresAt,
      chain: sending.chain.name,
    })
    return { ...byGateway, intent: { id, transferId: operationId, validUntil: expiresAt } }
  }

  const ways = {
    'in a single call': async (request: SpendRequest) => reserveSpend(database(), request),
    'in a batch': async (request: SpendRequest) => {
      const { accountId } = await openFundedAccount(sending)
      const [, verdict] = await reserveSpends(database(), [buildRequest(accountId, 1n), request])
      if (verdict === undefined) throw new Error('the batch has no second verdict')
      return verdict
    },
  }
  describe.each(Object.entries(ways))('%s', (_way, reserve) => {
    it('is sent and settled from what the reserve returned', async () => {
      const { accountId } = await openFundedAccount(sending)
      const request = buildRequest(accountId, 5n)
      const decided = await reserve(request)
      if (decided.verdict !== 'allow') throw new Error(`the reserve answered ${decided.verdict}`)
      const wallet = walletWritten(accountId, decided.written ?? null)
      const { decisionId, transfer: row } = request
      expect(await sendWritten(sending, { decisionId, row, wallet })).toMatchObject({
        transferId: row.id,
        status: 'confirmed',
      })
      expect(await usdcBalance(sending, accountId)).toEqual({ available: FUNDS - 5n, held: 0n })
    })

    it('is sent by the job when its process ends before it has sent it', async () => {
      const { accountId } = await openFundedAccount(sending)
      const request = buildRequest(accountId, 5n)
      expect(await reserve(request)).toMatchObject({ verdict: 'allow' })
      await settlePending({ ...sending, clock: later }, running)
      expect(await findTransferOfDecision(database(), request.decisionId)).toMatchObject({
        state: 'confirmed',
      })
      expect(await usdcBalance(sending, accountId)).toEqual({ available: FUNDS - 5n, held: 0n })
    })

    it('is not written without a hold, and once for an idempotency key', async () => {
      const { accountId } = await openFundedAccount(sending)
      const tooMuch = buildRequest(accountId, FUNDS + 1n)
      expect(await reserve(tooMuch)).toMatchObject({ verdict: 'insufficient_funds' })
      expect(await findTransferOfDecision(database(), tooMuch.decisionId)).toBeUndefined()
      const first = buildRequest(accountId, 5n)
      await reserve(first)
      const second = { ...buildRequest(accountId, 5n), idempotency: first.idempotency }
      expect(await reserve(second)).toMatchObject({ verdict: 'repeated', decisionId: first.decisionId })
      expect(await findTransferOfDecision(database(), second.decisionId)).toBeUndefined()
    })

    it('uses its intent up once: the second is not written, and its money is released', async () => {
      const { accountId } = await openFundedAccount(sending)
      const authorizedBy = await requestIntent(accountId)
      const [first, second] = [
        buildRequest(accountId, 5n, authorizedBy),
        buildRequest(accountId, 5n, authorizedBy),
      ]
      expect(await reserve(first)).toMatchObject({
        verdict: 'allow',
        written: { owner: { kind: 'gateway' } },
      })
      const decided = await reserve(second)
      expect(decided).toEqual({ verdict: 'allow', decisionId: second.decisionId })
      const { decisionId, transfer: row } = second
      await expect(sendWritten(sending, { decisionId, row, wallet: undefined })).rejects.toMatchObject({
        code: 'signature_rejected',
      })
      expect(await usdcBalance(sending, accountId)).toEqual({ available: FUNDS - 5n, held: 5n })
      await releaseSpend(database(), { decisionId: first.decisionId, at: systemClock() })
    })
  })
})
