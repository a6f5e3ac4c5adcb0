// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The part of a Safe that modules call.
interface IModuleSafe {
    function execTransactionFromModuleReturnData(address to, uint256 value, bytes calldata data, uint8 operation)
        external
        returns (bool success, bytes memory returnData);
}

/// @notice A Safe module through which a delegate pays for a Safe's agents, each up to a daily limit (UTC) over all tokens.
/// Only the Safe itself sets limits, so a stolen delegate key cannot spend more than the owner allowed.
/// Amounts are millionths of a US dollar; a token's price is the value of one whole token (10^6 units).
contract AgentAllowance {
    struct Allowance {
        uint96 daily;
        uint96 spent;
        uint32 day;
        bool isSet;
        uint96 once;
    }

    /// @dev Stands for all agents without an allowance of their own, which share this one.
    bytes32 public constant ANY_AGENT = 0;

    mapping(address safe => mapping(address delegate => mapping(bytes32 agent => Allowance))) private _allowances;
    mapping(address safe => mapping(address token => uint96 price)) private _prices;

    event AllowanceSet(address indexed safe, address indexed delegate, bytes32 indexed agent, uint96 daily);
    event OnceSet(address indexed safe, address indexed delegate, bytes32 indexed agent, uint96 once);
    event Spent(address indexed safe, address indexed delegate, bytes32 indexed agent, uint96 value);

    error AllowanceExceeded(uint256 daily, uint256 spent, uint256 value);
    error UnknownPrice(address token);
    error TransferFailed(bytes reason);

    /// @notice Called by the Safe. Also resets the agent's one-time allowance.
    function setAllowance(address delegate, bytes32 agent, uint96 daily) external {
        Allowance storage allowance = _allowances[msg.sender][delegate][agent];
        (allowance.daily, allowance.isSet, allowance.once) = (daily, true, 0);
        emit AllowanceSet(msg.sender, delegate, agent, daily);
    }

    /// @notice Called by the Safe. Sets the one-time allowance, which is spent before the daily limit counts.
    function setOnce(address delegate, bytes32 agent, uint96 once) external {
        _allowances[msg.sender][delegate][agent].once = once;
        emit OnceSet(msg.sender, delegate, agent, once);
    }

    /// @notice Called by the Safe. Tokens without a contract on this chain are skipped, so that one list, and with it
    /// one wallet address, serves every chain.
    function setPrices(address[] calldata tokens, uint96[] calldata prices) external {
        for (uint256 i = 0; i < tokens.length; ++i)
            if (tokens[i].code.length > 0) _prices[msg.sender][tokens[i]] = prices[i];
    }

    /// @notice Pays out of a Safe. Called by the delegate.
    function transfer(address safe, bytes32 agent, address token, address to, uint256 units) external {
        uint256 price = _prices[safe][token];
        require(price > 0, UnknownPrice(token));
        // Rounded up, so that no payment is free.
        uint256 value = (units * price + 999_999) / 1_000_000;
        bytes32 payer = _payerOf(safe, msg.sender, agent);
        Allowance storage allowance = _allowances[safe][msg.sender][payer];
        uint256 spent = _spentOn(allowance, block.timestamp / 1 days);
        uint256 fromOnce = value < allowance.once ? value : allowance.once;
        uint256 fromDay = value - fromOnce;
        require(fromDay == 0 || spent + fromDay <= allowance.daily, AllowanceExceeded(allowance.daily, spent, value));
        if (fromOnce > 0) allowance.once -= uint96(fromOnce);
        (allowance.spent, allowance.day) = (uint96(spent + fromDay), uint32(block.timestamp / 1 days));
        emit Spent(safe, msg.sender, payer, uint96(value));
        (bool success, bytes memory answer) = IModuleSafe(safe).execTransactionFromModuleReturnData(
            token, 0, abi.encodeWithSignature("transfer(address,uint256)", to, units), 0
        );
        // Some tokens return no data on success, but so does an address without code.
        require(success && (answer.length == 0 ? token.code.length > 0 : abi.decode(answer, (bool))), TransferFailed(answer));
    }

    /// @return daily the daily limit.
    /// @return spent amount spent of it today.
    /// @return isOwn whether it is the agent's own.
    /// @return once remaining one-time allowance.
    function allowanceOf(address safe, address delegate, bytes32 agent)
        external
        view
        returns (uint256 daily, uint256 spent, bool isOwn, uint256 once)
    {
        bytes32 payer = _payerOf(safe, delegate, agent);
        Allowance storage allowance = _allowances[safe][delegate][payer];
        return (allowance.daily, _spentOn(allowance, block.timestamp / 1 days), payer == agent, allowance.once);
    }

    function _payerOf(address safe, address delegate, bytes32 agent) private view returns (bytes32) {
        return _allowances[safe][delegate][agent].isSet ? agent : ANY_AGENT;
    }

    function _spentOn(Allowance storage allowance, uint256 day) private view returns (uint256) {
        return allowance.day == day ? allowance.spent : 0;
    }
}
