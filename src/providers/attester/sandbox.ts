/**
 * The sandbox’s attester: it reads burns on the local chains, and signs with a key that everybody knows, after the finality that the
 * burn asks for. It can be told to be late, to sign nothing, or to lie.
 */
import { concat, keccak256, numberToHex, pad, size, slice, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import type { Clock } from '../../core/base/clock.ts'
import type { Database } from '../../storage/database.ts'
import { cctpOn, fillInMessage, finality, parseBurnMessage } from '../cctp.ts'
import type { Chains } from '../chain/chains.ts'
import type { Hex } from '../chain/port.ts'
import { type AttestedMessage, type Attester, type BridgeMode, bridgeModes } from './port.ts'

const account = privateKeyToAccount(keccak256(stringToHex('bursar sandbox attester')))

/** One basis point for what is not final yet, and nothing for what is. */
const FEES = { fast: 100n, standard: 0n } as const
const MILLION = 1_000_000n

/** How long after a burn was first asked about it is signed. */
const FINAL_MS = 2_000
const LATE_MS = 5_000

export function createSandboxAttester({
  chains,
  database,
  clock,
}: {
  readonly chains: Chains
  readonly database: Database
  readonly clock: Clock
}): Attester {
  const askedAt = new Map<string, number>()
  let last: AttestedMessage | undefined

  async function sign(
    sent: Hex,
    { name, change }: { name: string; change: Change },
  ): Promise<AttestedMessage | undefined> {
    const parsed = parseBurnMessage(sent)
    if (parsed === undefined) return undefined
    const isFast = parsed.minFinality <= finality.fast
    const fee = isFast ? (parsed.burn.units * FEES.fast + MILLION - 1n) / MILLION : 0n
    const filled = fillInMessage(sent, {
      nonce: keccak256(stringToHex(name)),
      // With a lower fee than that, it waits until the burn is final.
      finality: isFast && fee <= parsed.burn.maxFee ? finality.fast : finality.standard,
      feeExecuted: isFast && fee <= parsed.burn.maxFee ? fee : 0n,
      expirationBlock: 0n,
    })
    const message = change(filled)
    return { message, attestation: await account.sign({ hash: keccak256(message) }) }
  }

  return {
    fees: async () => FEES,
    async find({ source, transactionHash }) {
      const chain = chains.all.find(({ name }) => cctpOn(name).domain === source)
      const transaction = await chain?.transaction(transactionHash)
      if (chain === undefined || transaction === undefined) return []
      const mode = await readMode(database)
      if (mode === 'lost') return []
      if (mode === 'replayed') return last === undefined ? [] : [last]
      const name = `${await chain.identity()} ${transactionHash}`
      const now = clock().getTime()
      const since = askedAt.get(name) ?? now
      askedAt.set(name, since)
      const found: AttestedMessage[] = []
      for (const [index, { message }] of transaction.sent.entries()) {
        const isFast = (parseBurnMessage(message)?.minFinality ?? 0) <= finality.fast
        const waitMs = mode === 'late' ? LATE_MS : isFast ? 0 : FINAL_MS
        if (now < since + waitMs) continue
        const signed = await sign(message, { name: `${name} ${index}`, change: changes[mode] })
        if (signed !== undefined) found.push(signed)
      }
      if (mode === 'normal' || mode === 'late') last = found.at(-1) ?? last
      return found
    },
    renew: async () => undefined,
    async setMode(mode, at) {
      await database.kysely
        .insertInto('sandbox_bridge')
        .values({ mode, set_at: at })
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ mode, set_at: at }))
        .execute()
    },
  }
}

type Change = (message: Hex) => Hex

/** Offsets of the recipient and the amount in a message. */
const RECIPIENT = 148 + 36
const UNITS = 148 + 68

const same: Change = (message) => message
const changes: Readonly<Record<BridgeMode, Change>> = {
  normal: same,
  late: same,
  lost: same,
  replayed: same,
  'other-amount': (message) => splice(message, UNITS, numberToHex(1_000_000n, { size: 32 })),
  'other-receiver': (message) => splice(message, RECIPIENT, pad(account.address, { size: 32 })),
}

function splice(message: Hex, start: number, word: Hex): Hex {
  return concat([slice(message, 0, start), word, slice(message, start + size(word))])
}

async function readMode({ kysely }: Database): Promise<BridgeMode> {
  const row = await kysely.selectFrom('sandbox_bridge').select('mode').executeTakeFirst()
  return bridgeModes.find((mode) => mode === row?.mode) ?? 'normal'
}
