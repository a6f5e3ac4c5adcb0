/** Chain access for x402 facilitators on the simulated chain. */
import { decodeFunctionData, parseAbi } from 'viem'
import { type Address, type EvmSigner, type Hex, refusedCall } from '../../providers/chain/port.ts'
import { isSignedByKey } from '../accounts/typed-data.ts'
import { encodeCalldata } from '../evm-signer.ts'
import { lowerCaseAddress, multicallAddress } from '../rpc/networks.ts'
import { isBridgeContract, judgeBridgeCall } from './simulated-bridge.ts'
import { isChannelContract, judgeChannelCall } from './simulated-channels.ts'
import { isEscrowContract, judgeEscrowCall } from './simulated-escrow.ts'
import { tokenAt } from './simulated-network.ts'
import { fakeHash } from './simulated-state.ts'
import { isSwapContract, judgePoolCall } from './simulated-swaps.ts'
import { type CallContext, judgeTokenCall, type SimulatedCall } from './simulated-token.ts'
import { isUptoContract, judgeUptoCall } from './simulated-upto.ts'

const multicallAbi = parseAbi([
  'struct Call { address target; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function tryAggregate(bool requireSuccess, Call[] calls) payable returns (Result[] results)',
])

/** Arbitrary code; only its existence matters. */
const someCode: Hex = '0x00'

/** Creates the signer over the simulated books. */
export function createSimulatedSigner(context: CallContext): EvmSigner {
  const { state, caller } = context
  let announced = 0

  async function write(to: Address, data: Hex, beforeBroadcast?: (hash: Hex) => Promise<void>): Promise<Hex> {
    const isToItself = lowerCaseAddress(to) === lowerCaseAddress(caller)
    const judged = isToItself ? undefined : await judge(context, to, data)
    announced += 1
    const hash = beforeBroadcast && fakeHash(`transaction ${state.identity} announced ${announced}`)
    if (hash !== undefined) await beforeBroadcast?.(hash)
    try {
      judged?.commit()
    } catch (error) {
      throw toRefusal(error)
    }
    return state.mine({ calldata: data, ...(hash === undefined ? {} : { hash }) })
  }

  return {
    address: context.caller,
    async readContract(call) {
      if (lowerCaseAddress(call.address) === lowerCaseAddress(multicallAddress))
        return readMany(context, encodeCalldata(call))
      const { result } = await judge(context, call.address, encodeCalldata(call))
      return result
    },
    verifyTypedData: isSignedByKey,
    writeContract: (call) => write(call.address, encodeCalldata(call)),
    sendTransaction: ({ to, data, beforeBroadcast }) => write(to, data, beforeBroadcast),
    async waitForTransactionReceipt({ hash }) {
      if (context.state.transaction(hash) === undefined)
        throw new Error(`The simulated chain has no transaction ${hash}.`)
      return { status: 'success' }
    },
    async getCode({ address }) {
      return findJudge(context, address) === undefined ? undefined : someCode
    },
  }
}

/** Checks a call of a contract. @throws the refusal of a call that would revert. */
export async function judge(context: CallContext, to: Address, data: Hex): Promise<SimulatedCall> {
  const judgeCall = findJudge(context, to)
  if (judgeCall === undefined) throw new Error(`The simulated chain has no contract at ${to}.`)
  try {
    return await judgeCall(context, data)
  } catch (error) {
    throw toRefusal(error)
  }
}

/** Finds what answers for the contract at an address. */
function findJudge(
  { state }: CallContext,
  to: Address,
): ((context: CallContext, data: Hex) => Promise<SimulatedCall>) | undefined {
  const token = tokenAt(state.network, to)
  if (token !== undefined) return (context, data) => judgeTokenCall(context, token, data)
  if (isUptoContract(to)) return judgeUptoCall
  if (isSwapContract(to)) return judgePoolCall
  if (isBridgeContract(to)) return judgeBridgeCall
  if (isEscrowContract(to)) return judgeEscrowCall
  return isChannelContract(to) ? judgeChannelCall : undefined
}

/** An error of the books occurs before they change. */
function toRefusal(error: unknown): Error {
  return refusedCall(error instanceof Error ? error.message : String(error), { cause: error })
}

async function readMany(context: CallContext, data: Hex): Promise<{ success: boolean; returnData: Hex }[]> {
  const [requireSuccess, calls] = decodeFunctionData({ abi: multicallAbi, data }).args
  return Promise.all(
    calls.map(async ({ target, callData }) => {
      try {
        const { encoded } = await judge(context, target, callData)
        return { success: true, returnData: encoded }
      } catch (error) {
        if (requireSuccess) throw error
        return { success: false, returnData: '0x' }
      }
    }),
  )
}
