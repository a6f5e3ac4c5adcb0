/** Two simulated chains and CCTP v2 between them: a message is delivered once, where it was sent, as it was signed. */
import { concat, getAddress, keccak256, numberToHex, pad, slice, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeEach, describe, expect, it } from 'vitest'
import { createSimulatedChain } from '../../../src/chain/simulated/simulated.ts'
import { silentLog } from '../../../src/core/base/log.ts'
import type { ChainName } from '../../../src/core/money/chains.ts'
import {
  cctpAbi,
  cctpOn,
  fillInMessage,
  finality,
  findMint,
  parseBurnBody,
  parseBurnMessage,
  sandboxAttesterAddress,
  sandboxMessengerAddress,
  sandboxTransmitterAddress,
} from '../../../src/providers/cctp.ts'
import type { AuthorizedOperation, Chain, Hex } from '../../../src/providers/chain/port.ts'

const noon = new Date('2026-11-03T12:00:00Z')
const attester = privateKeyToAccount(keccak256(stringToHex('bursar sandbox attester')))
const stranger = privateKeyToAccount(keccak256(stringToHex('a stranger')))
const wallet = { accountId: 'acct_1', origin: { kind: 'gateway' }, owner: { kind: 'gateway' } } as const
const UNITS = 5_000_000n

describe('the bridge between simulated chains', () => {
  let home: Chain
  let away: Chain

  beforeEach(async () => {
    const open = (name: ChainName) => createSimulatedChain({ clock: () => noon, log: silentLog, name })
    home = await open('base-sepolia')
    away = await open('arbitrum-sepolia')
    await home.mint([{ token: 'USDC', to: await home.walletAddress(wallet), units: UNITS }])
  })

  const operation = (
    changes: { target?: Hex; domain?: number; minReceived?: bigint } = {},
  ): AuthorizedOperation => ({
    wallet,
    id: 'tx_1',
    authorization: { kind: 'gateway' },
    validUntil: new Date(noon.getTime() + 60_000),
    call: {
      kind: 'swap',
      token: 'USDC',
      to: home.bridgeDesk,
      units: UNITS,
      route: {
        buy: 'USDC',
        minReceived: changes.minReceived ?? UNITS - 500n,
        target: changes.target ?? sandboxMessengerAddress,
        spender: sandboxMessengerAddress,
        data: '0x',
        burn: {
          to: 'arbitrum-sepolia',
          domain: changes.domain ?? cctpOn('arbitrum-sepolia').domain,
          minFinality: finality.fast,
        },
      },
    },
  })

  const burn = async (): Promise<Hex> => {
    const submitted = await home.submit(operation())
    if (submitted.status !== 'submitted') throw new Error(submitted.reason)
    const transaction = await home.transaction(submitted.transactionHash)
    const [sent] = transaction?.sent ?? []
    expect(sent?.operationHash).toBe(home.hashOperation(operation()))
    return sent?.message ?? '0x'
  }
  const attest = async (sent: Hex, { feeExecuted = 500n, by = attester } = {}) => {
    const nonce = keccak256(stringToHex('one'))
    const filled = { nonce, finality: finality.fast, feeExecuted, expirationBlock: 0n }
    const message = fillInMessage(sent, filled)
    return { nonce, message, attestation: await by.sign({ hash: keccak256(message) }) }
  }
  const deliver = (chain: Chain, { message, attestation }: { message: Hex; attestation: Hex }) =>
    chain.signer.writeContract({
      ...{ address: sandboxTransmitterAddress, abi: cctpAbi },
      ...{ functionName: 'receiveMessage', args: [message, attestation] },
    })

  it('knows the addresses of the sandbox', () => {
    expect(attester.address).toBe(sandboxAttesterAddress)
  })

  it('burns what was paid, and mints it less the fee, once', async () => {
    const holder = await home.walletAddress(wallet)
    const sent = await burn()
    expect(await home.readBalance('USDC', holder)).toBe(0n)
    expect(parseBurnMessage(sent)).toMatchObject({
      source: 6,
      destination: 3,
      burn: {
        recipient: holder.toLowerCase(),
        units: UNITS,
        maxFee: 500n,
        sender: home.bridgeDesk.toLowerCase(),
      },
    })
    const attested = await attest(sent)
    expect(await away.findDelivery(attested.nonce)).toBeUndefined()
    const hash = await deliver(away, attested)
    expect(await away.findDelivery(attested.nonce)).toBe(hash)
    expect(await away.readBalance('USDC', holder)).toBe(UNITS - 500n)
    const transaction = await away.transaction(hash)
    const [delivered] = transaction?.delivered ?? []
    if (transaction === undefined || delivered === undefined) throw new Error('nothing was delivered')
    const body = parseBurnBody(delivered.body)
    if (body === undefined) throw new Error('the body cannot be read')
    const token = away.tokens.USDC.toLowerCase() as Hex
    expect(findMint(transaction.transfers, delivered, { burn: body, token })?.units).toBe(UNITS - 500n)
    await expect(deliver(away, attested)).rejects.toThrow('Nonce already used')
    expect(await away.readBalance('USDC', holder)).toBe(UNITS - 500n)
  })

  it('delivers nothing that was changed, forged, or sent elsewhere', async () => {
    const sent = await burn()
    const attested = await attest(sent)
    const forged = await attest(sent, { by: stranger })
    await expect(deliver(away, forged)).rejects.toThrow('Invalid signature: not attester')
    await expect(deliver(home, attested)).rejects.toThrow('Invalid destination domain')
    await expect(deliver(away, await attest(sent, { feeExecuted: 501n }))).rejects.toThrow(
      'Fee exceeds max fee',
    )
    const other = concat([slice(sent, 0, 44), pad(stranger.address, { size: 32 }), slice(sent, 76)])
    await expect(deliver(away, await attest(other))).rejects.toThrow('Remote TokenMessenger unsupported')
    const wrong = concat([slice(sent, 0, 4), numberToHex(7, { size: 4 }), slice(sent, 8)])
    await expect(deliver(away, await attest(wrong))).rejects.toThrow('Remote TokenMessenger unsupported')
    expect(await away.readBalance('USDC', getAddress(await home.walletAddress(wallet)))).toBe(0n)
  })

  it.each([
    ['to a contract that is no messenger', { target: stranger.address }],
    ['to its own chain', { domain: 6 }],
    ['to a chain that there is not', { domain: 99 }],
    ['for nothing', { minReceived: 0n }],
  ])('burns nothing %s', async (_what, changes) => {
    expect(await home.submit(operation(changes))).toMatchObject({ status: 'refused', cause: 'transfer' })
    expect(await home.readBalance('USDC', await home.walletAddress(wallet))).toBe(UNITS)
  })
})
