/** A key's purchase on a chain in memory, its seller, and time that the test moves. */
import { keccak256, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { available, external, pursePlace } from '../../../src/books/ledger/accounts.ts'
import { balances } from '../../../src/books/ledger/balances.ts'
import { post } from '../../../src/books/ledger/post.ts'
import { reserveSpend } from '../../../src/books/spending/reserve.ts'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import type { Json } from '../../../src/core/base/json.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import { seal } from '../../../src/core/base/seal.ts'
import { insertKey } from '../../../src/people/identity/store.ts'
import type { Address } from '../../../src/providers/chain/port.ts'
import type { PublicAnswer, PublicRequest } from '../../../src/providers/public-fetch.ts'
import { executePayment, purseKey, signPayment } from '../../../src/rails/buying/authorization.ts'
import { bookOutcome } from '../../../src/rails/buying/pay-purchase.ts'
import { hashRequest, readRequest } from '../../../src/rails/buying/request.ts'
import {
  findPurchase,
  insertPurchase,
  keepDelivered,
  openPurse,
  type Purchase,
} from '../../../src/rails/buying/store.ts'
import { openWallet } from '../../../src/rails/wallets/open-wallet.ts'
import { findPayment } from '../../../src/records/recourse/payments.ts'
import { continueDue, openRecourse } from '../../../src/records/recourse/run-recourse.ts'
import { findAnyRecourse, type Recourse } from '../../../src/records/recourse/store.ts'
import { createWatchChain } from '../../../src/server/jobs/watch-chain.ts'
import type { Database } from '../../../src/storage/database.ts'
import { buildSpend } from '../../books/spending/scene.ts'
import { buildKeyPrincipal, newPerson, noon, servicesOn } from '../../kernel/scene.ts'
import { signedPurchase } from '../../rails/buying/signed-purchase.ts'

const running = new AbortController().signal
const SELLERS_KEY = keccak256(stringToHex('a seller that pays back'))
export const seller = privateKeyToAccount(SELLERS_KEY)
const url = 'https://a.example.com/'
export const PRICE = 100n

/** @property answer how the seller answers a request; not found by default. */
export interface SceneOptions {
  readonly refundUrl?: string | null
  readonly answer?: (request: PublicRequest) => number
}

export async function openScene(database: Database, { answer = () => 404, ...options }: SceneOptions = {}) {
  const { refundUrl = '/refund' } = options
  let now = noon.getTime()
  const clock = () => new Date(now)
  const requests: PublicRequest[] = []
  const fetchPublic = async (request: PublicRequest): Promise<PublicAnswer> => {
    requests.push(request)
    return { status: answer(request), headers: [], body: Buffer.from('{}'), truncated: false, bytes: 2 }
  }
  const chain = await createSimulatedChain({ clock, log: silentLog, identity: 'simulated' })
  const services = await servicesOn(database, { chain, clock, fetchPublic })
  const { dataKey } = services.settings
  const { account } = await newPerson(database)
  const home = await openWallet(services, { accountId: account.id, at: noon })
  const { key } = buildKeyPrincipal(account)
  await insertKey(database, account.id, { ...key, secretHash: null })
  const purse = purseKey(dataKey, key.id)
  await openPurse(
    { database, dataKey },
    { id: key.id, accountId: account.id, address: purse.address, home, chunk: 0n, at: noon },
  )
  await post(database, {
    id: `fund:${key.id}`,
    kind: 'test',
    reference: key.id,
    at: noon,
    postings: [
      {
        source: external('base-sepolia'),
        destination: available(account.id, pursePlace(key.id)),
        money: { asset: 'USDC', units: 700n },
      },
    ],
  })
  await chain.mint([
    { token: 'USDC', to: purse.address, units: 700n },
    { token: 'USDC', to: seller.address, units: 10_000n },
  ])
  const watch = createWatchChain(services)
  await watch(running)
  const parts = { ...services, signDocument: async () => 'signed.evidence' }

  /** Signs a purchase. */
  const buy = async (payTo: Address = seller.address) => {
    const spend = buildSpend({ accountId: account.id, keyId: key.id }, PRICE, {
      operation: 'purchases.buy',
      purse: { id: key.id, chunk: 0n },
    })
    await reserveSpend(database, spend)
    const { decisionId } = spend
    const written = signedPurchase({
      accountId: account.id,
      keyId: key.id,
      decisionId,
      address: purse.address,
      units: PRICE,
    })
    const nonce = keccak256(stringToHex(decisionId))
    const validBefore = new Date(now + 300_000)
    const sealed = { purpose: 'purchase credential', owner: written.purchaseId }
    await insertPurchase(database, {
      ...written,
      url,
      requestHash: hashRequest(readRequest({ url }, { loopback: true })),
      offer: { accepted: { extra: refundUrl === null ? {} : { refundUrl } } } satisfies Json,
      nonce,
      token: chain.tokens.USDC.toLowerCase() as Address,
      payTo: payTo.toLowerCase() as Address,
      signed: written.signed && {
        ...written.signed,
        validBefore,
        credential: seal(dataKey, sealed, JSON.stringify({ name: 'PAYMENT-SIGNATURE', value: 'signed' })),
      },
    })
    const read = async (): Promise<Purchase> => {
      const purchase = await findPurchase(database, { decisionId })
      if (purchase === undefined) throw new Error('the purchase has no row')
      return purchase
    }
    const { id } = await read()
    /** The seller uses the authorization. */
    const take = async () => {
      const message = {
        from: purse.address,
        to: payTo,
        value: PRICE,
        validAfter: 0n,
        validBefore: BigInt(validBefore.getTime() / 1_000),
        nonce,
      }
      await executePayment(chain, {
        asset: 'USDC',
        message,
        signature: await signPayment(chain, purse, { asset: 'USDC', message }),
      })
    }
    const settle = async () => {
      await take()
      await bookOutcome(services, await read(), null)
    }
    const deliver = () =>
      keepDelivered(database, {
        id,
        delivered: Buffer.from('sealed'),
        hash: 'hash',
        attempts: 1,
        at: clock(),
      })
    const open = async (reason: Recourse['reason'] = 'not_delivered') => {
      const owner = { accountId: account.id, keyId: key.id }
      const payment = await findPayment(database, owner, { kind: 'purchase', id })
      return openRecourse(parts, payment, { accountId: account.id, objectId: id, reason, note: null })
    }
    return { id, read, take, settle, deliver, open }
  }

  let sent = 0
  /** Sends money from an account on the chain; the gateway books it if it is ours. */
  const send = async (to: Address, units: bigint, from = seller) => {
    sent += 1
    const message = {
      from: from.address,
      to,
      value: units,
      validAfter: 0n,
      validBefore: BigInt(now / 1_000 + 300),
      nonce: keccak256(stringToHex(`${account.id} sent ${sent}`)),
    }
    await executePayment(chain, {
      asset: 'USDC',
      message,
      signature: await signPayment(chain, from, { asset: 'USDC', message }),
    })
    await watch(running)
  }
  return {
    database,
    services,
    parts,
    chain,
    account,
    key,
    purse: purse.address,
    home,
    requests,
    buy,
    send,
    /** Moves time, and runs the job. */
    pass: async (seconds: number) => {
      now += seconds * 1_000
      await continueDue(parts, running)
    },
    see: async (id: string): Promise<Recourse> => {
      const recourse = await findAnyRecourse(database, id)
      if (recourse === undefined) throw new Error('there is no such recourse')
      return recourse
    },
    readUnits: async (place: string) =>
      (await balances(database, account.id)).find((found) => found.place === place)?.available ?? 0n,
    readUsed: async () => {
      const rows = await database.kysely
        .selectFrom('budget_usage')
        .select('used_micros')
        .where('key_id', '=', key.id)
        .execute()
      return rows.reduce((sum, { used_micros }) => sum + used_micros, 0n)
    },
    listRefunds: () =>
      database.kysely
        .selectFrom('refund')
        .select(['object_id', 'units', 'usd_micros', 'entry_id'])
        .where('account_id', '=', account.id)
        .orderBy('movement')
        .execute(),
  }
}
